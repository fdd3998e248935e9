"""Families that came after those of eighth: see make_tiny_checkpoints."""

from .newest import multimodal
from .spelling import architecture, new_dtype, without

NEWEST = {"needs": [5, 24]}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
BEAM = without(architecture(
    "BeamForCausalLM", "beam", rms_norm_eps=1e-6, hidden_act="silu", head_dim=8, intermediate_size=30, moe_intermediate_size=10,
    num_hidden_layers=4, num_experts=6, num_experts_per_tok=2, n_group=3, topk_group=2, norm_topk_prob=True,
    routed_scaling_factor=2.5, final_logit_softcapping=30.0, attention_bias=False, sliding_window=9,
    layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    mlp_layer_types=["dense", "sparse", "sparse", "sparse"], output_router_logits=False,
    rope_parameters={"sliding_attention": ROPE, "full_attention": None}), "rope_theta", "rope_scaling")
CORRECTION = NEWEST | {"keep_float32": ["e_score_correction_bias", "mlp.gate.weight"]}

# Of the latents of a layer before, one that is rotated and one that is not.
LARGE4 = without(architecture(
    "", "mistral_large4_text", rms_norm_eps=1e-5, hidden_act="silu", num_key_value_heads=4, num_hidden_layers=6,
    intermediate_size=30, moe_intermediate_size=10, n_routed_experts=6, n_shared_experts=1, num_experts_per_tok=2, n_group=1,
    topk_group=1, routed_scaling_factor=1.0, kv_lora_rank=20, qk_rope_head_dim=6, qk_nope_head_dim=9, v_head_dim=7,
    index_topk=24, index_head_dim=10, index_n_heads=8, final_logit_softcapping=30.0, attention_bias=False,
    mlp_layer_types=["dense", "sparse", "sparse", "sparse", "sparse", "sparse"],
    no_rope_layers=[1, 1, 0, 1, 0, 1], kv_source_layers=[0, 1, 2, 1, 2, 5],
    indexer_types=["full", "shared", "full", "full", "shared", "shared"],
    rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0, "original_max_position_embeddings": 32,
                     "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0}), "rope_theta", "rope_scaling")
VISION = dict(model_type="pixtral", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, head_dim=8,
              image_size=28, patch_size=14)
IN_FLOAT32 = NEWEST | {"keep_float32": ["lerope.alpha", ".rotary_emb.alpha", ".gate.weight"]}


def seeing(text):
    return multimodal("MistralLarge4ForConditionalGeneration", "mistral_large4", text, VISION, image_token_index=10,
                      projector_hidden_act="gelu", multimodal_projector_bias=False, spatial_merge_size=2, vision_feature_layer=-1)


# name -> (config.json, storage)
MODELS = {
    "beam": (BEAM, CORRECTION),
    # Nothing is rotated where there is a window, and yarn where there is none; biases.
    "beam-swapped-ropes-f16": (
        BEAM | dict(
            num_hidden_layers=3, layer_types=["full_attention", "sliding_attention", "sliding_attention"], attention_bias=True,
            mlp_layer_types=["sparse", "dense", "sparse"], n_group=1, topk_group=1, norm_topk_prob=False, head_dim=10,
            num_attention_heads=3, num_key_value_heads=1, final_logit_softcapping=None, routed_scaling_factor=1.3,
            rope_parameters={"sliding_attention": None, "full_attention": {
                "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 64}},
            torch_dtype="float16"), CORRECTION),
    # Layers as the class has them by itself.
    "beam-nine-layers": (
        new_dtype(without(BEAM, "layer_types", "mlp_layer_types", "rope_parameters") | dict(
            num_hidden_layers=9, num_attention_heads=6, num_key_value_heads=2, head_dim=6, sliding_window=20, hidden_act="gelu",
            final_logit_softcapping=5.0, tie_word_embeddings=True)), CORRECTION | {"shards": 2}),
    "mistral-large4": (seeing(LARGE4), IN_FLOAT32),
    # Layers as the class has them by itself, groups of experts, biases.
    "mistral-large4-groups-bias-f16": (
        seeing(without(LARGE4, "no_rope_layers", "kv_source_layers", "indexer_types", "rope_parameters", "mlp_layer_types") | dict(
            num_hidden_layers=5, n_group=3, topk_group=2, attention_bias=True, index_topk=33, index_n_heads=7,
            index_topk_freq=2, index_skip_topk_offset=1, n_shared_experts=2, routed_scaling_factor=1.4, qk_rope_head_dim=8,
            qk_nope_head_dim=5, final_logit_softcapping=4.0, torch_dtype="float16")) | dict(torch_dtype="float16"), IN_FLOAT32),
    # All layers but the first over latents of others.
    "mistral-large4-one-of-each": (
        seeing(LARGE4 | dict(
            num_hidden_layers=4, no_rope_layers=[0, 1, 0, 1], kv_source_layers=[0, 1, 0, 1], mlp_layer_types=["sparse"] * 4,
            indexer_types=["full"] * 4, index_topk=2048, v_head_dim=11, kv_lora_rank=33,
            num_experts_per_tok=3)), IN_FLOAT32 | {"shards": 2}),
}
