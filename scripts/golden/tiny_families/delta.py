"""Families of the gated delta rule, beside Qwen's: see make_tiny_checkpoints."""

from .latent import YARN
from .spelling import architecture, new_dtype, new_rope, without

NEWEST = {"needs": [5, 24], "extra": "published_names"}
CORRECTION = {"keep_float32": ["e_score_correction_bias", "expert_bias", "A_log", "dt_bias"]}
NO_ROPE = {"rope_parameters": {"rope_theta": None, "rope_type": "default"}}
OLMO_HYBRID = without(architecture(
    "OlmoHybridForCausalLM", "olmo_hybrid", rms_norm_eps=1e-6, hidden_act="silu", attention_bias=False, num_hidden_layers=3,
    layer_types=["linear_attention", "full_attention", "linear_attention"], linear_num_key_heads=2, linear_num_value_heads=4,
    linear_key_head_dim=6, linear_value_head_dim=10, linear_conv_kernel_dim=4, linear_allow_neg_eigval=True,
    pad_token_id=0), "rope_theta") | NO_ROPE
KIMI_LINEAR = without(architecture(
    "KimiLinearForCausalLM", "kimi_linear", rms_norm_eps=1e-5, hidden_act="silu", num_key_value_heads=4, head_dim=9,
    num_hidden_layers=3, intermediate_size=30, moe_intermediate_size=10, model_max_length=256, kv_lora_rank=14,
    q_lora_rank=None, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8, num_experts=6, num_shared_experts=1,
    num_experts_per_token=2, num_expert_group=1, topk_group=1, moe_renormalize=True, moe_layer_freq=1,
    moe_router_activation_func="sigmoid", use_grouped_topk=True, routed_scaling_factor=2.4, first_k_dense_replace=1,
    mla_use_nope=True, rope_scaling=None, num_nextn_predict_layers=0, pad_token_id=0,
    linear_attn_config=dict(head_dim=7, num_heads=3, short_conv_kernel_size=4, full_attn_layers=[2], kda_layers=[1, 3])),
    "max_position_embeddings")
LING3 = architecture(
    "BailingHybridForCausalLM", "bailing_hybrid", rms_norm_eps=1e-6, hidden_act="silu", num_key_value_heads=4, head_dim=9,
    num_hidden_layers=3, intermediate_size=30, moe_intermediate_size=10, kv_lora_rank=14, q_lora_rank=None,
    qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8, num_experts=8, num_shared_experts=1, num_experts_per_tok=2,
    n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5, first_k_dense_replace=1, rope_theta=6000000.0,
    rope_scaling=None, short_conv_kernel_size=4, layer_group_size=2, kda_safe_gate=True, kda_lower_bound=-5.0,
    num_nextn_predict_layers=0, pad_token_id=0, mtp_loss_scaling_factor=0.0)

# name -> (config.json, storage)
MODELS = {
    "olmo-hybrid": (OLMO_HYBRID, NEWEST),
    "olmo-hybrid-rope-biases-f16": (
        new_rope(without(OLMO_HYBRID, "rope_parameters") | dict(
            rope_theta=50000.0, attention_bias=True, tie_word_embeddings=True, num_key_value_heads=1,
            linear_allow_neg_eigval=False, torch_dtype="float16", linear_num_key_heads=3, linear_num_value_heads=3,
            linear_key_head_dim=17, linear_value_head_dim=9), rope_type="default"), NEWEST),
    # All sizes of the rule by default.
    "olmo-hybrid-defaults": (
        without(OLMO_HYBRID, "layer_types", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                "linear_value_head_dim", "linear_allow_neg_eigval") | dict(
            num_hidden_layers=2, num_attention_heads=2, linear_conv_kernel_dim=3), NEWEST | {"shards": 2}),
    "kimi-linear": (KIMI_LINEAR, NEWEST | CORRECTION),
    "kimi-linear-q-lora-f16": (
        new_dtype(without(KIMI_LINEAR, "linear_attn_config", "first_k_dense_replace") | dict(
            q_lora_rank=9, layer_types=["full_attention", "linear_attention", "linear_attention"],
            mlp_layer_types=["sparse", "dense", "sparse"], linear_head_dim=18, linear_num_heads=2, linear_conv_kernel_dim=3,
            num_experts=8, num_expert_group=4, topk_group=2, num_experts_per_token=3, moe_renormalize=False,
            num_shared_experts=2, torch_dtype="float16")), NEWEST | CORRECTION),
    "kimi-linear-odd-sizes": (
        KIMI_LINEAR | dict(
            hidden_size=35, num_attention_heads=5, num_key_value_heads=5, kv_lora_rank=33, qk_nope_head_dim=7,
            qk_rope_head_dim=10, v_head_dim=17, num_hidden_layers=4,
            linear_attn_config=dict(head_dim=33, num_heads=2, short_conv_kernel_size=4, full_attn_layers=[4],
                                    kda_layers=[1, 2, 3])), NEWEST | CORRECTION | {"shards": 2}),
    "ling3": (LING3, NEWEST | CORRECTION),
    "ling3-soft-gate-q-lora-f16": (
        new_rope(without(LING3, "rope_scaling", "first_k_dense_replace") | dict(
            q_lora_rank=9, layer_types=["full_attention", "linear_attention", "linear_attention"],
            mlp_layer_types=["sparse", "dense", "sparse"], short_conv_kernel_size=3, kda_safe_gate=False, n_group=1,
            topk_group=1, head_dim=18, num_shared_experts=2, norm_topk_prob=False,
            torch_dtype="float16"), rope_type="default"), NEWEST | CORRECTION),
    "ling3-odd-sizes": (
        LING3 | dict(
            hidden_size=35, num_attention_heads=5, num_key_value_heads=5, kv_lora_rank=33, qk_nope_head_dim=7,
            qk_rope_head_dim=10, v_head_dim=17, num_hidden_layers=4, head_dim=33, layer_group_size=4, kda_lower_bound=-1.5,
            n_group=2, topk_group=1, rope_theta=10000.0, rope_scaling=YARN),
        NEWEST | CORRECTION | {"shards": 2}),
}
