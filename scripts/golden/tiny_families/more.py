"""Families that are put together of parts of the others."""

from .experts import CORRECTION, DEEPSEEK3, GRANITE_MOE, MIXTRAL, NEWER, SMALL
from .dense_rms import EXAONE4
from .spelling import architecture, new_rope, without
from .state import LFM2, MAMBA

INTERNLM3 = architecture(
    "InternLM3ForCausalLM", "internlm3", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8,
    bias=False, qkv_bias=False, rope_theta=50000000.0)
MINICPM3 = architecture(
    "MiniCPM3ForCausalLM", "minicpm3", rms_norm_eps=1e-5, hidden_act="silu",
    num_key_value_heads=4, kv_lora_rank=14, q_lora_rank=10, qk_nope_head_dim=6,
    qk_rope_head_dim=4, scale_emb=3, scale_depth=1.4, dim_model_base=10, attention_bias=False,
    tie_word_embeddings=True)
GLM_LITE = without(DEEPSEEK3, "first_k_dense_replace", "moe_layer_freq", "topk_method",
                   "scoring_func", "aux_loss_alpha", "seq_aux", "ep_size") | dict(
    architectures=["Glm4MoeLiteForCausalLM"], model_type="glm4_moe_lite", n_group=1, topk_group=1,
    routed_scaling_factor=1.8, topk_method="noaux_tc", first_k_dense_replace=1,
    partial_rotary_factor=1.0, rope_scaling=None)
NEMOTRON_H = without(architecture(
    "NemotronHForCausalLM", "nemotron_h", hidden_size=24, intermediate_size=20, head_dim=8,
    num_hidden_layers=4, hybrid_override_pattern="M-*M", mlp_hidden_act="relu2", mlp_bias=False,
    attention_bias=False, mamba_num_heads=6, mamba_head_dim=8, n_groups=2, ssm_state_size=6,
    conv_kernel=4, expand=2, chunk_size=16, mamba_hidden_act="silu", mamba_proj_bias=False,
    use_bias=False, use_conv_bias=True, layer_norm_epsilon=1e-5, residual_in_fp32=False,
    rescale_prenorm_residual=True, num_logits_to_keep=1, sliding_window=None), "rope_theta")
LFM2_MOE = without(LFM2, *(name for name in LFM2 if name.startswith("block_")), "full_attn_idxs") | dict(
    architectures=["Lfm2MoeForCausalLM"], model_type="lfm2_moe", num_dense_layers=1,
    moe_intermediate_size=8, num_experts=5, num_experts_per_tok=2, use_expert_bias=True,
    norm_topk_prob=True, routed_scaling_factor=1.0,
    layer_types=["conv", "full_attention", "conv"])
DOTS1 = architecture(
    "Dots1ForCausalLM", "dots1", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8,
    moe_intermediate_size=10, n_routed_experts=6, n_shared_experts=2, num_experts_per_tok=2,
    first_k_dense_replace=1, n_group=1, topk_group=1, norm_topk_prob=True,
    routed_scaling_factor=2.5, scoring_func="noaux_tc", attention_bias=False, sliding_window=None,
    max_window_layers=2, use_sliding_window=False)
EXAONE_MOE = EXAONE4 | dict(
    architectures=["ExaoneMoEForCausalLM"], model_type="exaone_moe", moe_intermediate_size=8,
    num_experts=4, num_experts_per_tok=2, num_shared_experts=1, first_k_dense_replace=1,
    n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5, intermediate_size=20,
    tie_word_embeddings=False)
MINIMAX_M2 = without(MIXTRAL, "sliding_window") | dict(
    architectures=["MiniMaxM2ForCausalLM"], model_type="minimax_m2", head_dim=8, rotary_dim=4,
    scoring_func="sigmoid", use_routing_bias=True, use_qk_norm=True, qk_norm_type="per_layer",
    rope_theta=5000000.0)
FLEX_OLMO = architecture(
    "FlexOlmoForCausalLM", "flex_olmo", rms_norm_eps=1e-6, hidden_act="silu", intermediate_size=8,
    num_experts=5, num_experts_per_tok=3, norm_topk_prob=False, attention_bias=False,
    pad_token_id=0, rope_theta=500000.0, output_router_logits=False, router_aux_loss_coef=0.01)

# name -> (config.json, storage)
MODELS = {
    "gpt2-inverse-layer": (
        dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=61, n_positions=112,
             n_ctx=112, n_embd=24, n_layer=3, n_head=3, n_inner=30, activation_function="gelu_new",
             layer_norm_epsilon=1e-5, scale_attn_by_inverse_layer_idx=True,
             reorder_and_upcast_attn=True, tie_word_embeddings=True, bos_token_id=60,
             eos_token_id=60, torch_dtype="float16"), {}),
    "internlm3": (INTERNLM3, NEWER),
    "internlm3-biases-dynamic-f16": (
        INTERNLM3 | dict(bias=True, qkv_bias=True, num_key_value_heads=1, torch_dtype="float16",
                         max_position_embeddings=24, rope_scaling={
                             "rope_type": "dynamic", "factor": 6.0}), NEWER),
    "internlm3-one-kv-head-tied": (
        INTERNLM3 | dict(num_attention_heads=3, num_key_value_heads=1, head_dim=10,
                         tie_word_embeddings=True, intermediate_size=22), NEWER | {"shards": 2}),
    "minicpm3": (MINICPM3, NEWER | {"embedding_scale": 0.1}),
    "minicpm3-longrope-untied": (
        MINICPM3 | dict(tie_word_embeddings=False, v_head_dim=8, original_max_position_embeddings=256,
                        rope_scaling={"type": "longrope", "short_factor": [1.0, 1.4],
                                      "long_factor": [1.1, 2.4],
                                      "original_max_position_embeddings": 256}),
        NEWER | {"embedding_scale": 0.1}),
    "glm4-moe-lite": (GLM_LITE, CORRECTION),
    "nemotron-h": (
        NEMOTRON_H, NEWER),
    "nemotron-h-experts": (
        NEMOTRON_H | dict(
            hybrid_override_pattern="ME*E", n_routed_experts=6, n_shared_experts=1, n_group=1,
            topk_group=1, moe_intermediate_size=8, moe_shared_expert_intermediate_size=10,
            num_experts_per_tok=2, norm_topk_prob=True, routed_scaling_factor=2.5, n_groups=1,
            mlp_bias=True, num_key_value_heads=1, torch_dtype="bfloat16"),
        NEWER | CORRECTION),
    "lfm2-moe": (LFM2_MOE, {"keep_float32": ["expert_bias"]}),
    "dots1": (DOTS1, CORRECTION),
    "exaone-moe": (EXAONE_MOE, CORRECTION),
    "exaone-moe-groups-f16": (
        without(EXAONE_MOE, "first_k_dense_replace") | dict(
            mlp_layer_types=["sparse", "dense", "sparse"], num_experts=6, n_group=3,
            topk_group=2, num_key_value_heads=1, norm_topk_prob=False, num_shared_experts=2,
            tie_word_embeddings=True, torch_dtype="float16"), CORRECTION),
    "exaone-moe-windows-only": (
        without(EXAONE_MOE, "sliding_window_pattern") | dict(
            num_experts=5, num_experts_per_tok=3, num_attention_heads=6, num_key_value_heads=2,
            layer_types=["sliding_attention"] * 3, routed_scaling_factor=1.3),
        CORRECTION),
    # transformers 5.5 rotates the whole head.
    "minimax-m2": (MINIMAX_M2, NEWER | CORRECTION),
    "flex-olmo": (FLEX_OLMO, {}),
    "granitemoe-shared": (
        GRANITE_MOE | dict(architectures=["GraniteMoeSharedForCausalLM"],
                           model_type="granitemoeshared", shared_intermediate_size=14,
                           num_local_experts=4), SMALL),
    "falcon-mamba": (
        MAMBA | dict(architectures=["FalconMambaForCausalLM"], model_type="falcon_mamba",
                     mixer_rms_eps=1e-6, tie_word_embeddings=False, torch_dtype="bfloat16"), {}),
    "cwm": (
        new_rope(architecture(
            "CwmForCausalLM", "cwm", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8,
            mlp_bias=False, sliding_window=8, num_hidden_layers=3, intermediate_size=24,
            layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
            rope_type="llama3", factor=16.0, high_freq_factor=4.0, low_freq_factor=1.0,
            original_max_position_embeddings=32), {}),
    "cwm-default-layers-tied-f16": (
        new_rope(architecture(
            "CwmForCausalLM", "cwm", rms_norm_eps=1e-5, hidden_act="silu", head_dim=8,
            mlp_bias=False, sliding_window=5, num_hidden_layers=5, intermediate_size=18,
            num_key_value_heads=1, tie_word_embeddings=True, torch_dtype="float16"),
            rope_type="llama3", factor=8.0, high_freq_factor=4.0, low_freq_factor=1.0,
            original_max_position_embeddings=16), {}),
    "cwm-three-heads": (
        new_rope(architecture(
            "CwmForCausalLM", "cwm", rms_norm_eps=1e-5, hidden_act="silu", head_dim=10,
            mlp_bias=False, sliding_window=100, num_hidden_layers=2, intermediate_size=22,
            num_attention_heads=3, num_key_value_heads=3, layer_types=["sliding_attention"] * 2),
            rope_type="default"), {"shards": 2}),
}
