"""Families whose MLP is chosen among experts."""

from .spelling import architecture, new_dtype, new_rope, without

MIXTRAL = architecture(
    "MixtralForCausalLM", "mixtral", hidden_act="silu", rms_norm_eps=1e-5, intermediate_size=14,
    num_local_experts=5, num_experts_per_tok=2, rope_theta=1000000.0, sliding_window=None,
    output_router_logits=False, router_aux_loss_coef=0.02, attention_dropout=0.0)
QWEN2_MOE = architecture(
    "Qwen2MoeForCausalLM", "qwen2_moe", hidden_act="silu", rms_norm_eps=1e-6,
    num_attention_heads=3, num_key_value_heads=1, moe_intermediate_size=10,
    shared_expert_intermediate_size=14, num_experts=6, num_experts_per_tok=3, norm_topk_prob=False,
    decoder_sparse_step=1, mlp_only_layers=[], max_window_layers=2, sliding_window=8,
    use_sliding_window=False, rope_theta=1000000.0, output_router_logits=False,
    router_aux_loss_coef=0.001)
QWEN3_MOE = without(QWEN2_MOE, "shared_expert_intermediate_size", "num_attention_heads") | dict(
    architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, norm_topk_prob=True, attention_bias=False,
    sliding_window=None)
OLMOE = architecture(
    "OlmoeForCausalLM", "olmoe", hidden_act="silu", rms_norm_eps=1e-5, num_key_value_heads=4,
    intermediate_size=8, num_experts=7, num_experts_per_tok=3, norm_topk_prob=False,
    clip_qkv=None, attention_bias=False, output_router_logits=False, router_aux_loss_coef=0.01)
GRANITE_MOE = architecture(
    "GraniteMoeForCausalLM", "granitemoe", hidden_act="silu", rms_norm_eps=1e-6,
    intermediate_size=10, num_local_experts=6, num_experts_per_tok=2, attention_bias=False,
    tie_word_embeddings=True, embedding_multiplier=7.0, logits_scaling=2.5,
    residual_multiplier=0.7, attention_multiplier=0.21, output_router_logits=False,
    router_aux_loss_coef=0.0)
PHIMOE = architecture(
    "PhimoeForCausalLM", "phimoe", hidden_act="silu", rms_norm_eps=1e-5, intermediate_size=12,
    num_local_experts=5, num_experts_per_tok=2, attention_bias=True, lm_head_bias=True,
    sliding_window=None, router_jitter_noise=0.01, input_jitter_noise=0.01,
    output_router_logits=False, router_aux_loss_coef=0.0)
GPT_OSS = without(architecture(
    "GptOssForCausalLM", "gpt_oss", hidden_act="silu", rms_norm_eps=1e-5, intermediate_size=12,
    head_dim=8, num_local_experts=4, num_experts_per_tok=2, experts_per_token=2,
    attention_bias=True, sliding_window=8, swiglu_limit=7.0, initial_context_length=32,
    rope_theta=150000.0, layer_types=["sliding_attention", "full_attention"],
    output_router_logits=False, router_aux_loss_coef=0.9,
    rope_scaling=dict(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                      original_max_position_embeddings=32)), "torch_dtype") | {
    "torch_dtype": "bfloat16"}
GLM4_MOE = architecture(
    "Glm4MoeForCausalLM", "glm4_moe", hidden_act="silu", rms_norm_eps=1e-5, intermediate_size=30,
    head_dim=8, partial_rotary_factor=0.5, moe_intermediate_size=10, n_routed_experts=8,
    n_shared_experts=1, num_experts_per_tok=3, n_group=1, topk_group=1, norm_topk_prob=True,
    routed_scaling_factor=1.7, first_k_dense_replace=1, attention_bias=True, use_qk_norm=False,
    rope_theta=1000000.0, rope_scaling=None, num_nextn_predict_layers=0)
ERNIE_MOE = architecture(
    "Ernie4_5_MoeForCausalLM", "ernie4_5_moe", hidden_act="silu", rms_norm_eps=1e-5,
    intermediate_size=30, moe_intermediate_size=10, moe_num_experts=8, moe_k=3,
    moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=1, moe_layer_interval=1,
    moe_capacity=[8, 8, 8], moe_gate="topk", moe_use_aux_free=True, use_bias=False,
    rope_theta=500000.0, tie_word_embeddings=True, pad_token_id=0)
HUNYUAN_MOE = architecture(
    "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", hidden_act="silu", rms_norm_eps=1e-5,
    intermediate_size=12, head_dim=8, num_experts=5, moe_topk=2, attention_bias=False,
    tie_word_embeddings=True, pad_token_id=0)
# transformers 5.23 passes over attn_config.rope_theta: only its default is the same everywhere.
DBRX = dict(
    model_type="dbrx", architectures=["DbrxForCausalLM"], vocab_size=61, d_model=24, n_heads=4,
    n_layers=2, max_seq_len=256, emb_pdrop=0.0, resid_pdrop=0.0, tie_word_embeddings=False,
    attn_config=dict(clip_qkv=1.2, kv_n_heads=2, rope_theta=10000),
    ffn_config=dict(ffn_hidden_size=12, moe_num_experts=5, moe_top_k=2, moe_jitter_eps=0.01,
                    moe_loss_weight=0.05),
    output_router_logits=False, torch_dtype="bfloat16")
DEEPSEEK2 = architecture(
    "DeepseekV2ForCausalLM", "deepseek_v2", hidden_act="silu", rms_norm_eps=1e-6,
    num_key_value_heads=4, intermediate_size=30, moe_intermediate_size=10, kv_lora_rank=14,
    q_lora_rank=None, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8, n_routed_experts=6,
    n_shared_experts=2, num_experts_per_tok=2, first_k_dense_replace=1, moe_layer_freq=1,
    topk_method="greedy", n_group=1, topk_group=1, norm_topk_prob=False, routed_scaling_factor=1.0,
    scoring_func="softmax", attention_bias=False, aux_loss_alpha=0.001, seq_aux=True, ep_size=1)
DEEPSEEK3 = DEEPSEEK2 | dict(
    architectures=["DeepseekV3ForCausalLM"], model_type="deepseek_v3", q_lora_rank=10,
    n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3, topk_method="noaux_tc",
    n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5,
    scoring_func="sigmoid", num_nextn_predict_layers=0)
LLAMA4 = architecture(
    "Llama4ForCausalLM", "llama4_text", hidden_act="silu", rms_norm_eps=1e-5, intermediate_size=6,
    intermediate_size_mlp=30, head_dim=8, num_hidden_layers=3, num_local_experts=4,
    num_experts_per_tok=1, interleave_moe_layer_step=1, use_qk_norm=True, attention_chunk_size=8,
    attn_temperature_tuning=True, floor_scale=8, attn_scale=0.1, rope_theta=500000.0,
    rope_scaling=None, no_rope_layers=[1, 1, 0], attention_bias=False, for_llm_compressor=False,
    output_router_logits=False, router_aux_loss_coef=0.001, router_jitter_noise=0.0)
# Wrong or broken in transformers 5.5.
NEWER = {"needs": [5, 23]}
CORRECTION = {"keep_float32": ["e_score_correction_bias"]}
SMALL = {"embedding_scale": 0.05}

# name -> (config.json, storage)
MODELS = {
    "mixtral": (MIXTRAL, {}),
    "mixtral-window-tied-f16": (
        new_rope(MIXTRAL | dict(sliding_window=8, num_experts_per_tok=3, head_dim=8,
                                num_key_value_heads=1, tie_word_embeddings=True,
                                num_local_experts=4, torch_dtype="float16"),
                 rope_type="default"), {}),
    "mixtral-top1-sharded": (
        MIXTRAL | dict(num_experts_per_tok=1, num_local_experts=4, num_key_value_heads=4),
        {"shards": 2}),
    "qwen2-moe": (QWEN2_MOE, {}),
    "qwen2-moe-sparse-step-f16": (
        new_rope(QWEN2_MOE | dict(decoder_sparse_step=2, num_hidden_layers=3, norm_topk_prob=True,
                                  num_experts_per_tok=2, tie_word_embeddings=True,
                                  intermediate_size=20, torch_dtype="float16"),
                 rope_type="default"), {}),
    "qwen2-moe-mlp-only-window": (
        QWEN2_MOE | dict(mlp_only_layers=[0], use_sliding_window=True, max_window_layers=1,
                         qkv_bias=False, num_key_value_heads=3, num_experts=5), {}),
    "qwen3-moe": (QWEN3_MOE, {}),
    "qwen3-moe-unnormed-tied-f16": (
        new_rope(QWEN3_MOE | dict(norm_topk_prob=False, tie_word_embeddings=True,
                                  attention_bias=True, num_key_value_heads=1, num_experts=5,
                                  num_experts_per_tok=2, torch_dtype="float16"),
                 rope_type="default"), {}),
    "qwen3-moe-mlp-only": (
        QWEN3_MOE | dict(mlp_only_layers=[1], num_experts=7, num_experts_per_tok=1,
                         num_key_value_heads=4, intermediate_size=26), {"shards": 2}),
    "olmoe": (OLMOE, {}),
    "olmoe-clip-normed-gqa-f16": (
        new_rope(OLMOE | dict(clip_qkv=0.9, norm_topk_prob=True, num_key_value_heads=2,
                              num_experts_per_tok=2, torch_dtype="float16",
                              tie_word_embeddings=True), rope_type="default"), {}),
    "granitemoe": (GRANITE_MOE, SMALL),
    "granitemoe-bias-untied-f16": (
        new_rope(GRANITE_MOE | dict(attention_bias=True, tie_word_embeddings=False,
                                    num_experts_per_tok=4, num_key_value_heads=1,
                                    torch_dtype="float16"), rope_type="default"), SMALL),
    "phimoe": (PHIMOE, {}),
    "phimoe-no-bias-f16": (
        new_rope(PHIMOE | dict(attention_bias=False, lm_head_bias=False, num_key_value_heads=1,
                               tie_word_embeddings=True, sliding_window=8, torch_dtype="float16"),
                 rope_type="default"), {}),
    "gpt-oss": (GPT_OSS, {}),
    "gpt-oss-default-rope-tied-f32": (
        new_dtype(without(GPT_OSS, "rope_theta", "rope_scaling", "layer_types",
                          "initial_context_length") | dict(
            rope_parameters={"rope_type": "default", "rope_theta": 9000.0}, num_local_experts=3,
            tie_word_embeddings=True, num_experts_per_tok=1, experts_per_token=1,
            num_key_value_heads=1, head_dim=6,
            attention_bias=False, intermediate_size=8, torch_dtype="float32")), {}),
    # Weights that are large enough for the limits of the gate to matter.
    "gpt-oss-limits-mqa-f16": (
        new_rope(without(GPT_OSS, "rope_scaling", "initial_context_length") | dict(
            num_hidden_layers=3, layer_types=["full_attention"] + ["sliding_attention"] * 2,
            sliding_window=5, num_key_value_heads=1, num_local_experts=5, num_experts_per_tok=3,
            experts_per_token=3, tie_word_embeddings=True, torch_dtype="float16"),
            rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=True,
            original_max_position_embeddings=64),
        {"matrix_scale": 4.0, "shards": 2}),
    "glm4-moe": (GLM4_MOE, CORRECTION),
    "glm4-moe-groups-qk-norm-f16": (
        new_rope(without(GLM4_MOE, "rope_scaling", "partial_rotary_factor") | dict(
            n_group=4, topk_group=2, use_qk_norm=True, attention_bias=False, norm_topk_prob=False,
            n_shared_experts=2, num_key_value_heads=1, tie_word_embeddings=True,
            torch_dtype="float16"), rope_type="default", partial_rotary_factor=0.5), CORRECTION),
    "ernie4_5-moe": (ERNIE_MOE, CORRECTION),
    "ernie4_5-moe-bias-untied-f16": (
        new_rope(ERNIE_MOE | dict(
            moe_layer_start_index=0, moe_layer_end_index=-1, moe_layer_interval=2, use_bias=True,
            moe_num_shared_experts=1, num_key_value_heads=1, tie_word_embeddings=False,
            num_hidden_layers=3, intermediate_size=16, moe_num_experts=5, torch_dtype="float16"),
            rope_type="default"), CORRECTION),
    "hunyuan-moe": (HUNYUAN_MOE, {}),
    "hunyuan-moe-untied-f16": (
        new_rope(HUNYUAN_MOE | dict(moe_topk=3, tie_word_embeddings=False, attention_bias=True,
                                    num_key_value_heads=1, torch_dtype="float16"),
                 rope_type="default"), {}),
    "hunyuan-moe-lists-alpha": (
        HUNYUAN_MOE | dict(
            moe_topk=[3, 3], num_shared_expert=[1, 1], moe_intermediate_size=[12, 12],
            num_attention_heads=6, num_key_value_heads=3, head_dim=6, num_experts=4,
            rope_scaling={"type": "dynamic", "alpha": 20.0, "factor": 1.0}), {}),
    "dbrx": (DBRX, NEWER),
    "dbrx-top3-f16": (
        new_dtype(DBRX | dict(
            torch_dtype="float16", n_heads=3,
            attn_config=dict(clip_qkv=8, kv_n_heads=1, rope_theta=10000.0),
            ffn_config=DBRX["ffn_config"] | dict(moe_top_k=3, moe_normalize_expert_weights=1.0,
                                                 ffn_act_fn={"name": "gelu"}))), NEWER),
    "dbrx-unnormed-sharded": (
        DBRX | dict(
            n_heads=6, n_layers=3, torch_dtype="float32",
            attn_config=dict(clip_qkv=0.4, kv_n_heads=6, rope_theta=10000.0),
            ffn_config=DBRX["ffn_config"] | dict(
                moe_num_experts=4, moe_top_k=1, ffn_hidden_size=10,
                moe_normalize_expert_weights=None)), NEWER | {"shards": 2}),
    # As V2-Lite, and as V2.
    "deepseek2-lite": (DEEPSEEK2, {}),
    "deepseek2-groups-f16": (
        new_rope(DEEPSEEK2 | dict(
            q_lora_rank=10, n_group=3, topk_group=2, topk_method="group_limited_greedy",
            routed_scaling_factor=3.0, n_shared_experts=1, v_head_dim=6, torch_dtype="float16"),
            rope_type="default"), {}),
    # The attention's scale takes mscale_all_dim; transformers before 5.23 forgets it.
    "deepseek2-yarn": (
        DEEPSEEK2 | dict(rope_scaling=dict(
            type="yarn", factor=8, beta_fast=32, beta_slow=1, mscale=0.707, mscale_all_dim=0.707,
            original_max_position_embeddings=32)), NEWER),
    "deepseek3": (DEEPSEEK3, CORRECTION),
    "deepseek3-yarn-f16": (
        DEEPSEEK3 | dict(
            n_group=2, topk_group=1, routed_scaling_factor=1.3, torch_dtype="float16",
            attention_bias=True, tie_word_embeddings=True,
            rope_scaling=dict(type="yarn", factor=8, beta_fast=32, beta_slow=1, mscale=1.0,
                              mscale_all_dim=1.0, original_max_position_embeddings=32)),
        CORRECTION),
    "deepseek3-halves-no-q-lora": (
        new_rope(DEEPSEEK3 | dict(
            rope_interleave=False, q_lora_rank=None, norm_topk_prob=False, n_group=1, topk_group=1,
            first_k_dense_replace=0, n_routed_experts=5, qk_rope_head_dim=6, qk_nope_head_dim=4),
            rope_type="default"), CORRECTION),
    "llama4-text": (LLAMA4, {}),
    "llama4-text-interleaved-f16": (
        new_rope(without(LLAMA4, "rope_scaling") | dict(
            interleave_moe_layer_step=2, num_experts_per_tok=2, use_qk_norm=False,
            attn_temperature_tuning=False, num_key_value_heads=1, tie_word_embeddings=True,
            no_rope_layers=[1, 0, 1], torch_dtype="float16"),
            rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=32), {}),
}
