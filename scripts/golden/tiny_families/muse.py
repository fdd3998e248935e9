"""Muse Glimmer, whose class is that of a checkpoint that sees: see make_tiny_checkpoints."""

from .newest import ZERO, multimodal
from .spelling import architecture, new_rope, without

NEWEST = {"needs": [5, 24], "plain_norms": ["language_model.norm"]} | ZERO
GLIMMER = without(architecture(
    "", "muse_glimmer_text", rms_norm_eps=1e-5, post_norm_eps=1e-8, hidden_activation="silu", head_dim=8, num_hidden_layers=4,
    sliding_window=9, layer_types=["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
    layer_rope_theta=[10000.0, 10000.0, 10000.0, 0], qk_scale_factor=3.87, output_multiplier=0.35, final_logit_softcapping=20.0,
    attention_bias=False, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}), "hidden_act", "rope_theta", "rope_scaling")
VISION = dict(model_type="muse_glimmer_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
              patch_size=4, pos_emb_height=4, pos_emb_width=4, patch_temporal=1, merge_size=1, max_position_embeddings=16)


def seeing(text):
    return multimodal("MuseGlimmerForConditionalGeneration", "muse_glimmer", text, VISION, image_token_id=500, video_token_id=501,
                      out_hidden_size=16, projector_hidden_size=16)


# name -> (config.json, storage)
MODELS = {
    "muse-glimmer": (seeing(GLIMMER), NEWEST),
    # Layers as the class has them by itself, an epsilon that shows, biases.
    "muse-glimmer-bias-f16": (
        seeing(without(GLIMMER, "layer_types", "layer_rope_theta") | dict(
            num_hidden_layers=5, num_key_value_heads=1, attention_bias=True, post_norm_eps=0.01, qk_scale_factor=1.5,
            final_logit_softcapping=3.0, torch_dtype="float16")) | dict(torch_dtype="float16"), NEWEST | {"shards": 2}),
    "muse-glimmer-tied-scaled-rope": (
        seeing(GLIMMER | dict(
            tie_word_embeddings=True, num_attention_heads=6, num_key_value_heads=3, head_dim=4, hidden_activation="gelu",
            num_hidden_layers=3, layer_types=["full_attention", "sliding_attention", "full_attention"],
            layer_rope_theta=[0, 500.0, 500.0], output_multiplier=2.0,
            rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0})), NEWEST | {"embedding_scale": 0.1}),
}
