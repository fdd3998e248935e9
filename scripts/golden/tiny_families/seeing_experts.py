"""Checkpoints that see, with experts for images alone beside those for text: see make_tiny_checkpoints."""

from .experts import ERNIE_MOE
from .newest import multimodal
from .spelling import new_rope, without

TEXT = new_rope(without(ERNIE_MOE, "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval", "moe_capacity", "moe_gate",
                        "moe_use_aux_free") | dict(
    model_type="ernie4_5_vl_moe_text", num_hidden_layers=3, moe_intermediate_size=[10, 6], head_dim=8,
    mlp_layer_types=["dense", "sparse", "sparse"]), rope_type="default", mrope_section=[1, 1, 2])
VISION = dict(model_type="ernie4_5_vl_moe_vision", depth=1, hidden_size=16, num_heads=2, intermediate_size=16, patch_size=4,
              spatial_merge_size=2)
IDS = dict(image_token_id=500, video_token_id=501, image_start_token_id=502, image_end_token_id=503, video_start_token_id=504,
           video_end_token_id=505)
NEWEST = {"needs": [5, 24]}


def seeing(text, **changes):
    return multimodal("Ernie4_5_VLMoeForConditionalGeneration", "ernie4_5_vl_moe", text, VISION, **IDS, **changes)


# name -> (config.json, storage)
MODELS = {
    "ernie45-vl": (seeing(TEXT), NEWEST),
    # Class defaults of the layers, nothing that all tokens go to.
    "ernie45-vl-untied-f16": (
        seeing(without(TEXT, "mlp_layer_types") | dict(
            tie_word_embeddings=False, moe_num_shared_experts=0, moe_num_experts=5, moe_k=2, num_key_value_heads=1, head_dim=12,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 2])), torch_dtype="float16"),
        NEWEST | {"shards": 2}),
    "ernie45-vl-biases": (
        seeing(TEXT | dict(use_bias=True, num_attention_heads=3, num_key_value_heads=3, moe_intermediate_size=[14, 22],
                           mlp_layer_types=["sparse", "dense", "sparse"])), NEWEST),
}
