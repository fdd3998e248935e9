"""Cosmos 3 Edge: see make_tiny_checkpoints."""

from .newest import multimodal
from .spelling import architecture, new_rope

TEXT = new_rope(architecture(
    "Cosmos3EdgeTextModel", "cosmos3_edge_text", hidden_act="relu2", rms_norm_eps=1e-5, head_dim=8, attention_bias=False, mlp_bias=False,
    pad_token_id=0), rope_type="default", mrope_section=[2, 1, 1])
VISION = dict(model_type="cosmos3_edge_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
              patch_size=4, num_patches=16, spatial_merge_size=2)
NEWEST = {"needs": [5, 24]}


def seeing(text, **changes):
    return multimodal("Cosmos3EdgeForConditionalGeneration", "cosmos3_edge", text, VISION, image_token_id=500, video_token_id=501,
                      vision_start_token_id=502, vision_end_token_id=503, projector_hidden_size=20, **changes)


# name -> (config.json, storage)
MODELS = {
    "cosmos3-edge": (seeing(TEXT), NEWEST),
    "cosmos3-edge-biases-f16": (
        seeing(TEXT | dict(attention_bias=True, mlp_bias=True, num_hidden_layers=3, num_key_value_heads=1, head_dim=12,
                           rope_parameters=dict(rope_type="default", rope_theta=3000.0, mrope_section=[2, 2, 2])),
               torch_dtype="float16"), NEWEST),
    "cosmos3-edge-odd": (
        seeing(TEXT | dict(num_attention_heads=3, num_key_value_heads=3, hidden_size=30, intermediate_size=22, hidden_act="gelu")),
        NEWEST | {"shards": 2}),
}
