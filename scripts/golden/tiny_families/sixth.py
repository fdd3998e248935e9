"""Families that came after those of fifth: see make_tiny_checkpoints."""

from .newest import multimodal
from .recent import APERTUS
from .spelling import architecture, new_rope, without

NEWEST = {"needs": [5, 24]}
KOLIBRI = without(new_rope(architecture(
    "Kolibri1ForCausalLM", "kolibri1", head_dim=8, rms_norm_eps=1e-6, hidden_act="silu", num_hidden_layers=3, sliding_window=7,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"], num_local_experts=6, num_experts_per_tok=2,
    moe_intermediate_size=10, shared_expert_intermediate_size=14, norm_topk_prob=False), rope_type="default"), "intermediate_size")
ETTIN = without(architecture(
    "ModernBertDecoderForCausalLM", "modernbert-decoder", num_hidden_layers=4, hidden_activation="gelu", norm_eps=1e-5,
    norm_bias=False, attention_bias=False, mlp_bias=False, decoder_bias=True, classifier_bias=False, classifier_activation="gelu",
    local_attention=14, global_attn_every_n_layers=3, global_rope_theta=160000.0, local_rope_theta=10000.0, pad_token_id=0,
    tie_word_embeddings=True, position_embedding_type="sans_pos"), "num_key_value_heads", "rope_theta")
APERTUS15 = new_rope(without(APERTUS, "rope_scaling", "num_key_value_heads") | dict(
    architectures=["Apertus1p5TextForCausalLM"], model_type="apertus1p5_text", num_key_value_heads=2, vocab_size=75,
    output_vocab_size=61, pad_token_id=3),
    rope_type="llama3", factor=8.0, original_max_position_embeddings=32, low_freq_factor=1.0, high_freq_factor=4.0)
STEP = without(architecture(
    "Step3p5ForCausalLM", "step3p5", num_hidden_layers=4, head_dim=8, rms_norm_eps=1e-5, sliding_window=7, moe_num_experts=6,
    moe_top_k=2, moe_intermediate_size=10, share_expert_dim=14, moe_router_scaling_factor=3.0, moe_layers_enum="1,2,3",
    layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"], num_attention_groups=2,
    attention_other_setting={"attention_type": "sliding_attention", "num_attention_heads": 6, "num_attention_groups": 2,
                             "head_dim": 8, "true_head_dim": 8},
    rope_theta=[5000000.0, 10000.0, 10000.0, 5000000.0], partial_rotary_factors=[0.5, 1.0, 1.0, 0.5],
    rope_scaling={"rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 32, "low_freq_factor": 1.0,
                  "high_freq_factor": 32.0},
    swiglu_limits=[0.0, 0.0, 0.4, 0.7], swiglu_limits_shared=[0.5, 0.0, 0.0, 0.3], pad_token_id=0), "num_key_value_heads")
STEP_VISION = dict(width=16, layers=1, heads=2, image_size=28, patch_size=14, mlp_ratio=1.0)
STEP_STORAGE = NEWEST | {"keep_float32": ["router_bias"], "zero_centred_norms": True}
CORRECTION = {"keep_float32": ["expert_bias", "e_score_correction_bias"]}

# name -> (config.json, storage)
MODELS = {
    "kolibri": (KOLIBRI, NEWEST | CORRECTION),
    "kolibri-normalised-f16": (
        KOLIBRI | dict(norm_topk_prob=True, num_experts_per_tok=3, num_key_value_heads=4, tie_word_embeddings=True, dtype="float16",
                       layer_types=["sliding_attention", "sliding_attention", "full_attention"]), NEWEST | CORRECTION),
    # Without a window no layer is rotated.
    "kolibri-no-windows": (
        KOLIBRI | dict(layer_types=["full_attention"] * 3, num_attention_heads=3, num_key_value_heads=1,
                       head_dim=10, num_local_experts=5), NEWEST | CORRECTION | {"shards": 2}),
    "ettin": (ETTIN, NEWEST),
    "ettin-biases-untied-f16": (
        without(ETTIN, "local_rope_theta", "global_rope_theta") | dict(
            norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True, decoder_bias=False, tie_word_embeddings=False,
            torch_dtype="float16", sliding_window=9,
            layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
            rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 50000.0},
                             "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}), NEWEST),
    "ettin-three-heads": (
        ETTIN | dict(num_attention_heads=3, hidden_size=30, global_attn_every_n_layers=2, num_hidden_layers=3),
        NEWEST | {"shards": 2}),
    "apertus15-text": (APERTUS15, NEWEST),
    "apertus15-text-all-drawn-f16": (
        without(APERTUS15, "output_vocab_size") | dict(attention_bias=True, tie_word_embeddings=True, vocab_size=61, dtype="float16"),
        NEWEST | {"shards": 2}),
    "step37": (
        multimodal("Step3p7ForConditionalGeneration", "step3p7", STEP, STEP_VISION, image_token_id=60, projector_bias=False),
        STEP_STORAGE),
    "step37-new-spelling-f16": (
        multimodal("Step3p7ForConditionalGeneration", "step3p7", without(
            STEP, "attention_other_setting", "moe_layers_enum", "rope_scaling", "partial_rotary_factors", "rope_theta", "swiglu_limits",
            "moe_num_experts", "moe_top_k") | dict(
                num_sliding_attention_heads=2, n_routed_experts=5, num_experts_per_tok=3, attention_bias=True,
                query_pre_attn_scalar=12, swiglu_limits_shared=[None, 0.4, None, None],
                mlp_layer_types=["sparse", "dense", "sparse", "sparse"], rope_parameters={
                    "full_attention": {"rope_type": "default", "rope_theta": 50000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0, "partial_rotary_factor": 0.5}}),
            STEP_VISION, image_token_id=60, torch_dtype="float16"), STEP_STORAGE | {"shards": 2}),
}
