"""Dense families that norm with a mean (LayerNorm), and those whose branches stand in parallel."""

from .spelling import architecture, new_dtype, new_rope, without

PHI = architecture(
    "PhiForCausalLM", "phi", hidden_size=32, num_key_value_heads=None, hidden_act="gelu_new",
    layer_norm_eps=1e-5, partial_rotary_factor=0.5, qk_layernorm=False, rope_scaling=None,
    embd_pdrop=0.0, resid_pdrop=0.1)
STARCODER2 = architecture(
    "Starcoder2ForCausalLM", "starcoder2", hidden_act="gelu_pytorch_tanh", norm_epsilon=1e-5,
    norm_type="layer_norm", mlp_type="default", use_bias=True, sliding_window=8,
    tie_word_embeddings=True)
NEOX = without(architecture(
    "GPTNeoXForCausalLM", "gpt_neox", hidden_size=32, hidden_act="gelu", layer_norm_eps=1e-5,
    rotary_pct=0.25, rotary_emb_base=10000, use_parallel_residual=True), "rope_theta",
    "num_key_value_heads")
GPTJ = dict(
    model_type="gptj", architectures=["GPTJForCausalLM"], vocab_size=61, n_positions=128, n_embd=24,
    n_layer=2, n_head=3, n_inner=None, rotary_dim=4, rotary=True, activation_function="gelu_new",
    layer_norm_epsilon=1e-5, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
    scale_attn_weights=True, torch_dtype="float16")
STABLELM = architecture(
    "StableLmForCausalLM", "stablelm", hidden_size=32, hidden_act="silu", layer_norm_eps=1e-5,
    partial_rotary_factor=0.25, use_qkv_bias=True)
COHERE = architecture(
    "CohereForCausalLM", "cohere", layer_norm_eps=1e-5, hidden_act="silu", logit_scale=0.3,
    use_qk_norm=False, attention_bias=False, rope_theta=8000000.0, tie_word_embeddings=True)
COHERE2 = without(COHERE, "use_qk_norm") | dict(
    architectures=["Cohere2ForCausalLM"], model_type="cohere2", num_hidden_layers=3,
    intermediate_size=30, sliding_window=8, sliding_window_pattern=3, rope_theta=50000.0,
    rotary_pct=1.0, use_embedding_sharing=True, use_gated_activation=True,
    use_parallel_block=True, use_parallel_embedding=False, position_embedding_type="rope_gptj",
    order_of_interleaved_layers="local_attn_first")
OLMO = architecture(
    "OlmoForCausalLM", "olmo", hidden_act="silu", clip_qkv=None, attention_bias=False,
    num_key_value_heads=4)
NEMOTRON = architecture(
    "NemotronForCausalLM", "nemotron", hidden_size=32, hidden_act="relu2", norm_eps=1e-5,
    partial_rotary_factor=0.5, attention_bias=False, mlp_bias=False)
OPT = dict(
    model_type="opt", architectures=["OPTForCausalLM"], vocab_size=61, hidden_size=24, ffn_dim=38,
    num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=112,
    word_embed_proj_dim=24, do_layer_norm_before=True, activation_function="relu", dropout=0.1,
    bos_token_id=2, eos_token_id=2, pad_token_id=1, prefix="</s>", torch_dtype="float16")
FALCON = dict(
    model_type="falcon", architectures=["FalconForCausalLM"], vocab_size=61, hidden_size=24,
    num_hidden_layers=2, num_attention_heads=3, layer_norm_epsilon=1e-5, alibi=False, bias=False,
    multi_query=True, new_decoder_architecture=False, parallel_attn=True, hidden_dropout=0.0,
    apply_residual_connection_post_layernorm=False, bos_token_id=1, eos_token_id=2,
    torch_dtype="bfloat16")
BLOOM = dict(
    model_type="bloom", architectures=["BloomForCausalLM"], vocab_size=61, n_embed=24, n_layer=2,
    num_attention_heads=3, n_inner=None, layer_norm_epsilon=1e-5, hidden_dropout=0.0,
    apply_residual_connection_post_layernorm=False, attention_softmax_in_fp32=True,
    masked_softmax_fusion=True, bias_dropout_fusion=True, offset_alibi=100, pretraining_tp=1,
    skip_bias_add=True, skip_bias_add_qkv=False, seq_length=128, slow_but_exact=False,
    bos_token_id=1, eos_token_id=2, pad_token_id=3, unk_token_id=0, torch_dtype="float16")
# Eager attention of transformers 5.5 adds ALiBi twice: to the scores and in the mask.
FALCON_ALIBI = FALCON | dict(alibi=True, bias=True)
ADDED_ONCE = {"attention": "sdpa"}
MPT = dict(
    model_type="mpt", architectures=["MPTForCausalLM"], vocab_size=61, d_model=24, n_heads=3,
    n_layers=2, expansion_ratio=4, max_seq_len=128, learned_pos_emb=True, no_bias=True,
    norm_type="low_precision_layernorm", embedding_fraction=1.0, emb_pdrop=0, resid_pdrop=0,
    init_device="cpu", logit_scale=None, use_cache=False, tokenizer_name="EleutherAI/gpt-neox-20b",
    attn_config=dict(alibi=True, alibi_bias_max=8, attn_impl="torch", attn_pdrop=0,
                     attn_type="multihead_attention", attn_uses_sequence_id=False, clip_qkv=None,
                     prefix_lm=False, qk_ln=False, softmax_scale=None),
    torch_dtype="bfloat16")
BIGCODE = dict(
    model_type="gpt_bigcode", architectures=["GPTBigCodeForCausalLM"], vocab_size=61,
    n_positions=128, n_embd=24, n_layer=2, n_head=4, n_inner=50, multi_query=True,
    activation_function="gelu_pytorch_tanh", layer_norm_epsilon=1e-5, scale_attn_weights=True,
    attention_softmax_in_fp32=True, scale_attention_softmax_in_fp32=True, bos_token_id=0,
    eos_token_id=0, inference_runner=0, pad_key_length=True, pre_allocate_kv_cache=False,
    validate_runner_input=True, max_sequence_length=None, max_batch_size=None,
    torch_dtype="float16")

# name -> (config.json, storage)
MODELS = {
    "phi": (PHI, {}),
    "phi-qk-norm-f16": (
        new_rope(without(PHI, "rope_scaling", "partial_rotary_factor") | dict(
            qk_layernorm=True, num_key_value_heads=2, torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.25), {}),
    "phi-2-tied": (
        PHI | dict(hidden_size=40, num_key_value_heads=4, partial_rotary_factor=0.4,
                   intermediate_size=14, tie_word_embeddings=True), {}),
    "starcoder2": (STARCODER2, {}),
    "starcoder2-no-bias-untied-f16": (
        new_rope(STARCODER2 | dict(use_bias=False, sliding_window=None, tie_word_embeddings=False,
                                   num_key_value_heads=1, torch_dtype="float16"),
                 rope_type="default"), {}),
    "gpt-neox-parallel-f16": (NEOX | dict(torch_dtype="float16"), {"extra": "neox_tables"}),
    "gpt-neox-sequential": (
        NEOX | dict(use_parallel_residual=False, rotary_pct=1.0, rotary_emb_base=25000,
                    hidden_size=24, attention_bias=True), {}),
    "gpt-neox-tied-no-bias-f32": (
        new_dtype(without(NEOX, "rotary_pct", "rotary_emb_base") | dict(
            attention_bias=False, tie_word_embeddings=True, hidden_act="gelu_new", hidden_size=24,
            torch_dtype="float32", rope_parameters={
                "rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0,
                "partial_rotary_factor": 0.7})), {}),
    "gptj": (GPTJ, {"causal_masks": True}),
    "gptj-rotary-8-f32": (
        new_dtype(GPTJ | dict(n_embd=20, n_head=2, n_inner=26, rotary_dim=8, torch_dtype="float32")),
        {}),
    "stablelm": (STABLELM, {}),
    "stablelm-qk-norm-parallel-f16": (
        new_rope(without(STABLELM, "partial_rotary_factor") | dict(
            use_qkv_bias=False, qk_layernorm=True, use_parallel_residual=True,
            num_key_value_heads=1, torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.5), {}),
    "stablelm-tied": (
        STABLELM | dict(use_qkv_bias=False, num_key_value_heads=4, tie_word_embeddings=True,
                        partial_rotary_factor=1.0), {}),
    "cohere": (COHERE, {}),
    "cohere-qk-norm-f16": (
        new_rope(COHERE | dict(use_qk_norm=True, num_key_value_heads=1, torch_dtype="float16"),
                 rope_type="default"), {}),
    "cohere-bias-untied-f32": (
        COHERE | dict(attention_bias=True, num_key_value_heads=4, tie_word_embeddings=False,
                      logit_scale=0.0625, intermediate_size=14, torch_dtype="float32"), {}),
    "cohere2": (COHERE2, {}),
    "cohere2-layer-types-f16": (
        new_rope(without(COHERE2, "sliding_window_pattern") | dict(
            num_hidden_layers=2, num_key_value_heads=1, logit_scale=1.0, attention_bias=True,
            layer_types=["full_attention", "sliding_attention"], torch_dtype="float16"),
            rope_type="default"), {}),
    "olmo": (OLMO, {}),
    "olmo-clip-tied-f16": (
        new_rope(OLMO | dict(clip_qkv=0.9, num_key_value_heads=2, tie_word_embeddings=True,
                             torch_dtype="float16"), rope_type="default"), {}),
    "olmo-bias-mqa-f32": (
        OLMO | dict(attention_bias=True, num_key_value_heads=1, num_attention_heads=3,
                    intermediate_size=20, torch_dtype="float32"), {}),
    "nemotron": (NEMOTRON, {}),
    "nemotron-biases-f16": (
        new_rope(without(NEMOTRON, "partial_rotary_factor") | dict(
            attention_bias=True, mlp_bias=True, head_dim=12, num_key_value_heads=1,
            tie_word_embeddings=True, torch_dtype="float16", hidden_size=24),
            rope_type="default", partial_rotary_factor=0.5), {}),
    "opt-f16": (OPT, {}),
    # As OPT-350M: norms after the residual, embeddings of their own width.
    "opt-post-norm": (
        OPT | dict(do_layer_norm_before=False, torch_dtype="bfloat16"),
        {"strip": "model."}),
    # As Galactica.
    "opt-gelu-no-bias-f32": (
        new_dtype(OPT | dict(enable_bias=False, activation_function="gelu",
                             layer_norm_elementwise_affine=True, num_attention_heads=3,
                             ffn_dim=14, max_position_embeddings=110,
                             torch_dtype="float32")), {}),
    "falcon-7b-style": (FALCON, {}),
    "falcon-40b-style": (
        FALCON | dict(new_decoder_architecture=True, num_attention_heads=4, num_kv_heads=2,
                      hidden_size=32, ffn_hidden_size=50), {}),
    "falcon-one-norm-f16": (
        new_dtype(FALCON | dict(new_decoder_architecture=True, num_ln_in_parallel_attn=1,
                                num_attention_heads=4, num_kv_heads=1, ffn_hidden_size=60,
                                tie_word_embeddings=False, torch_dtype="float16",
                                rope_theta=500042.0)), {}),
    "falcon-rw-style": (
        FALCON_ALIBI | dict(multi_query=False, parallel_attn=False, num_attention_heads=6),
        ADDED_ONCE),
    "falcon-alibi-parallel": (FALCON_ALIBI | dict(num_attention_heads=4), ADDED_ONCE),
    "bloom-f16": (BLOOM, {"strip": "transformer.", "matrix_scale": 3.0}),
    "bloom-post-norm": (
        new_dtype(without(BLOOM, "n_embed", "num_attention_heads") | dict(
            hidden_size=24, n_head=4, apply_residual_connection_post_layernorm=True,
            torch_dtype="bfloat16")), {"matrix_scale": 3.0}),
    "mpt": (MPT, {}),
    "mpt-clip-scale-f16": (
        MPT | dict(n_heads=4, torch_dtype="float16", attn_config=MPT["attn_config"] | dict(
            clip_qkv=0.9, softmax_scale=0.31)), {}),
    "gpt-bigcode-mqa": (BIGCODE, {}),
    "gpt-bigcode-heads": (
        new_dtype(BIGCODE | dict(multi_query=False, n_inner=None, activation_function="gelu",
                                 tie_word_embeddings=False, torch_dtype="bfloat16", n_head=3)), {}),
}
