"""More families, of blocks that others have: see make_tiny_checkpoints."""

from .newest import multimodal
from .spelling import architecture, new_dtype, new_rope, without

NEWEST = {"needs": [5, 24]}
STATE = NEWEST | {"keep_float32": ["A_log", "dt_bias"]}
LARA_MINI = architecture(
    "LaraMiniForCausalLM", "lara_mini", rms_norm_eps=1e-6, hidden_act="silu", attention_bias=False, head_dim=8,
    num_hidden_layers=4, moe_intermediate_size=10, shared_expert_intermediate_size=14, num_experts=6, num_experts_per_tok=2,
    norm_topk_prob=True, sliding_window=7, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=6,
    linear_value_head_dim=10, linear_conv_kernel_dim=4,
    layer_types=["linear_attention", "sliding_attention", "full_attention", "linear_attention"])
LARA_MINI = without(LARA_MINI, "intermediate_size")
ARIA = architecture(
    "AriaTextForCausalLM", "aria_text", rms_norm_eps=1e-6, hidden_act="silu", attention_bias=False, mlp_bias=False,
    intermediate_size=14, moe_num_experts=6, moe_topk=2, moe_num_shared_experts=2, pad_token_id=2)
ARIA_VISION = dict(model_type="idefics3_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                   num_attention_heads=2, image_size=8, patch_size=4)
PERSIMMON = without(architecture(
    "PersimmonForCausalLM", "persimmon", layer_norm_eps=1e-5, hidden_act="relu2", qk_layernorm=True,
    hidden_size=32, partial_rotary_factor=0.5, rope_theta=25000.0), "num_key_value_heads")
BIOGPT = without(architecture(
    "BioGptForCausalLM", "biogpt", layer_norm_eps=1e-12, hidden_act="gelu", scale_embedding=True, layerdrop=0.0,
    activation_dropout=0.0, tie_word_embeddings=True, bos_token_id=0, pad_token_id=1), "num_key_value_heads", "rope_theta")

# name -> (config.json, storage)
MODELS = {
    "lara-mini": (LARA_MINI, STATE),
    "lara-mini-biases-tied-f16": (
        new_rope(LARA_MINI | dict(
            attention_bias=True, tie_word_embeddings=True, num_key_value_heads=1, norm_topk_prob=False,
            num_experts_per_tok=3, linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=17,
            linear_value_head_dim=9, linear_conv_kernel_dim=3, torch_dtype="float16"), rope_type="default"), STATE),
    # The layers by default, tied where nothing says so; sizes that are no multiples of four.
    "lara-mini-default-layers": (
        without(LARA_MINI, "layer_types", "tie_word_embeddings", "norm_topk_prob", "linear_conv_kernel_dim") | dict(
            num_hidden_layers=5, hidden_size=35, num_attention_heads=5, num_key_value_heads=5, head_dim=10, sliding_window=20,
            rope_scaling={"rope_type": "linear", "factor": 3.0}), STATE | {"shards": 2, "embedding_scale": 0.25}),
    "aria-text": (ARIA, NEWEST),
    "aria-text-biases-tied-f16": (
        new_rope(ARIA | dict(attention_bias=True, tie_word_embeddings=True, num_key_value_heads=1, moe_topk=3,
                             moe_num_shared_experts=1, head_dim=10, torch_dtype="float16"), rope_type="default"), NEWEST),
    # As the older code writes it: counts by default, as many KV heads as heads.
    "aria-text-defaults": (
        without(ARIA, "moe_num_experts", "moe_topk", "moe_num_shared_experts", "num_key_value_heads", "attention_bias") | dict(
            hidden_size=30, num_attention_heads=5, intermediate_size=9, num_hidden_layers=3,
            rope_theta=500000.0), NEWEST | {"shards": 2}),
    "aria": (
        multimodal("AriaForConditionalGeneration", "aria", ARIA, ARIA_VISION, image_token_index=60,
                   projector_patch_to_query_dict={"4": 2}), NEWEST),
    "persimmon": (PERSIMMON, NEWEST),
    "persimmon-no-norms-tied-f16": (
        new_rope(without(PERSIMMON, "partial_rotary_factor") | dict(
            qk_layernorm=False, tie_word_embeddings=True, hidden_act="gelu", torch_dtype="float16"),
            rope_type="default", partial_rotary_factor=0.25), NEWEST),
    # The part of the head by default.
    "persimmon-three-heads": (
        without(PERSIMMON, "partial_rotary_factor", "qk_layernorm", "hidden_act") | dict(
            hidden_size=36, num_attention_heads=3, num_hidden_layers=3, intermediate_size=29,
            rope_scaling={"rope_type": "linear", "factor": 3.0}), NEWEST | {"shards": 2}),
    "biogpt": (BIOGPT, NEWEST | {"embedding_scale": 0.08}),
    "biogpt-own-head-f16": (
        BIOGPT | dict(tie_word_embeddings=False, scale_embedding=False, hidden_act="relu", torch_dtype="float16"), NEWEST),
    "biogpt-three-heads": (
        new_dtype(without(BIOGPT, "tie_word_embeddings", "scale_embedding", "hidden_act") | dict(
            hidden_size=33, num_attention_heads=3, num_hidden_layers=3, intermediate_size=29, max_position_embeddings=200)),
        NEWEST | {"shards": 2, "embedding_scale": 0.15, "matrix_scale": 1.8}),
}
