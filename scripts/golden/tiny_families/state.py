"""Families with layers that carry a state instead of a cache of keys and values."""

from .spelling import architecture, new_dtype, new_rope, without

MAMBA = dict(
    model_type="mamba", architectures=["MambaForCausalLM"], vocab_size=61, hidden_size=24,
    num_hidden_layers=2, n_layer=2, d_model=24, d_inner=48, intermediate_size=48, expand=2,
    state_size=6, conv_kernel=4, time_step_rank=3, use_bias=False, use_conv_bias=True,
    hidden_act="silu", layer_norm_epsilon=1e-5, residual_in_fp32=True, fused_add_norm=True,
    rms_norm=True, bos_token_id=0, eos_token_id=0, pad_token_id=0, torch_dtype="float32")
MAMBA2 = dict(
    model_type="mamba2", architectures=["Mamba2ForCausalLM"], vocab_size=61, hidden_size=24,
    num_hidden_layers=2, expand=2, num_heads=6, head_dim=8, state_size=10, n_groups=2,
    conv_kernel=4, chunk_size=16, use_bias=False, use_conv_bias=True, hidden_act="silu",
    layer_norm_epsilon=1e-5, residual_in_fp32=True, rms_norm=True, norm_before_gate=True,
    time_step_rank=2, bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False,
    torch_dtype="bfloat16")
FALCON_H1 = architecture(
    "FalconH1ForCausalLM", "falcon_h1", hidden_act="silu", rms_norm_eps=1e-5, intermediate_size=20,
    head_dim=6, mamba_d_ssm=24, mamba_n_heads=4, mamba_d_head=6, mamba_n_groups=1, mamba_d_state=8,
    mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16, mamba_conv_bias=True,
    mamba_proj_bias=False, mamba_norm_before_gate=False, mamba_rms_norm=False, mamba_use_mlp=True,
    projectors_bias=False, attention_bias=False, mlp_bias=False, embedding_multiplier=1.7,
    lm_head_multiplier=0.6, key_multiplier=0.8, attention_in_multiplier=1.2,
    attention_out_multiplier=0.9, ssm_in_multiplier=1.25, ssm_out_multiplier=0.7,
    mlp_multipliers=[0.9, 0.6], ssm_multipliers=[0.7, 0.5, 0.9, 1.1, 0.8], rope_scaling=None,
    rope_theta=100000000000.0)
JAMBA = without(architecture(
    "JambaForCausalLM", "jamba", hidden_act="silu", rms_norm_eps=1e-6, intermediate_size=12,
    num_hidden_layers=3, attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2,
    expert_layer_offset=0, num_experts=3, num_experts_per_tok=2, mamba_d_state=5, mamba_d_conv=4,
    mamba_expand=2, mamba_dt_rank=3, mamba_conv_bias=True, mamba_proj_bias=False,
    use_mamba_kernels=False, output_router_logits=False, router_aux_loss_coef=0.001,
    sliding_window=None, num_logits_to_keep=1, pad_token_id=0), "rope_theta")
LFM2 = without(architecture(
    "Lfm2ForCausalLM", "lfm2", norm_eps=1e-5, intermediate_size=36, num_hidden_layers=3,
    block_dim=24, block_ff_dim=36, block_multiple_of=8, block_ffn_dim_multiplier=1.0,
    block_auto_adjust_ff_dim=True, block_use_swiglu=True, block_norm_eps=1e-5, conv_L_cache=3,
    conv_bias=False, conv_dim=24, conv_dim_out=24, full_attn_idxs=[1], use_pos_enc=True,
    tie_embedding=True, num_heads=4, pad_token_id=0, rope_theta=1000000.0), "tie_word_embeddings")
QWEN3_NEXT = architecture(
    "Qwen3NextForCausalLM", "qwen3_next", hidden_act="silu", rms_norm_eps=1e-6, head_dim=8,
    intermediate_size=20, num_attention_heads=3, num_key_value_heads=1, attention_bias=False,
    partial_rotary_factor=0.25, full_attention_interval=2, linear_conv_kernel_dim=4,
    linear_key_head_dim=6, linear_value_head_dim=8, linear_num_key_heads=2,
    linear_num_value_heads=4, decoder_sparse_step=1, moe_intermediate_size=6,
    shared_expert_intermediate_size=6, num_experts=4, num_experts_per_tok=2, norm_topk_prob=True,
    mlp_only_layers=[], output_router_logits=False, router_aux_loss_coef=0.001,
    rope_theta=10000000.0, rope_scaling=None)
GRANITE_HYBRID = architecture(
    "GraniteMoeHybridForCausalLM", "granitemoehybrid", hidden_act="silu", rms_norm_eps=1e-5,
    intermediate_size=6, shared_intermediate_size=10, num_hidden_layers=3,
    layer_types=["mamba", "attention", "mamba"], num_local_experts=4, num_experts_per_tok=2,
    attention_bias=False, embedding_multiplier=7.0, logits_scaling=2.5, residual_multiplier=0.7,
    attention_multiplier=0.21, position_embedding_type="nope", mamba_n_heads=6, mamba_d_head=8,
    mamba_n_groups=1, mamba_d_state=6, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16,
    mamba_conv_bias=True, mamba_proj_bias=False, tie_word_embeddings=True, init_method="mup",
    normalization_function="rmsnorm", rope_scaling=None, output_router_logits=False,
    router_aux_loss_coef=0.01)
# Norms groups of a row together in transformers 5.5.
NEWER = {"needs": [5, 23]}
ZERO = {"zero_centred_norms": True}
SMALL = {"embedding_scale": 0.05}

# name -> (config.json, storage)
MODELS = {
    "mamba-f32": (MAMBA, {}),
    "mamba-biases-untied-f16": (
        new_dtype(MAMBA | dict(use_bias=True, use_conv_bias=False, tie_word_embeddings=False,
                               conv_kernel=3, time_step_rank=2, torch_dtype="float16",
                               layer_norm_epsilon=1e-6)), {}),
    "mamba2": (MAMBA2, NEWER),
    "mamba2-tied-f16": (
        new_dtype(MAMBA2 | dict(n_groups=1, num_heads=4, head_dim=12, state_size=16,
                                tie_word_embeddings=True, use_bias=True, chunk_size=7,
                                torch_dtype="float16")), {}),
    "falcon-h1": (FALCON_H1, {}),
    "falcon-h1-norm-tied-f16": (
        new_rope(without(FALCON_H1, "rope_scaling") | dict(
            mamba_rms_norm=True, mamba_norm_before_gate=True, mamba_n_groups=2,
            tie_word_embeddings=True, projectors_bias=True, attention_bias=True, mlp_bias=True,
            num_key_value_heads=1, rope_theta=10000.0, torch_dtype="float16"),
            rope_type="default"), {}),
    "falcon-h1-gated-norm": (
        FALCON_H1 | dict(mamba_rms_norm=True, mamba_n_groups=2, num_key_value_heads=4), {}),
    "jamba": (JAMBA, {}),
    "jamba-dense-f16": (
        new_dtype(JAMBA | dict(
            num_experts=1, num_experts_per_tok=1, attn_layer_period=3, attn_layer_offset=0,
            num_hidden_layers=2, mamba_proj_bias=True, mamba_conv_bias=False,
            tie_word_embeddings=True, num_key_value_heads=1, torch_dtype="float16")), {}),
    "lfm2": (LFM2, {}),
    "lfm2-layer-types-f16": (
        new_rope(without(LFM2, "full_attn_idxs", "tie_embedding", "block_ff_dim") | dict(
            layer_types=["full_attention", "conv", "conv"], conv_bias=True, conv_L_cache=4,
            block_auto_adjust_ff_dim=False, tie_word_embeddings=False, num_key_value_heads=1,
            torch_dtype="float16"), rope_type="default"), {}),
    "qwen3-next": (QWEN3_NEXT, ZERO),
    "qwen3-next-dense-f16": (
        new_rope(without(QWEN3_NEXT, "rope_scaling", "partial_rotary_factor",
                         "full_attention_interval") | dict(
            layer_types=["full_attention", "linear_attention"], mlp_only_layers=[0],
            norm_topk_prob=False, tie_word_embeddings=True, linear_num_key_heads=3,
            linear_num_value_heads=3, linear_key_head_dim=8, linear_value_head_dim=6,
            num_key_value_heads=3, torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.5), ZERO),
    "granite-hybrid": (GRANITE_HYBRID, SMALL),
    "granite-hybrid-rope-dense-f16": (
        new_rope(without(GRANITE_HYBRID, "rope_scaling") | dict(
            num_local_experts=0, num_experts_per_tok=0, position_embedding_type="rope",
            num_hidden_layers=2, layer_types=["attention", "mamba"], shared_intermediate_size=20,
            mamba_n_groups=2, tie_word_embeddings=False, torch_dtype="float16"),
            rope_type="default"), SMALL | NEWER),
}
