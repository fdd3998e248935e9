"""Models that gate what each head of attention gives, and parts that think of larger ones: see make_tiny_checkpoints."""

from .newest import QWEN2_VISION, QWEN3_VISION, QWEN3_VL_MOE, QWEN_VL, SIGLIP, multimodal
from .spelling import architecture, new_dtype, new_rope, without

NEWEST = {"needs": [5, 24]}
WHOLE = NEWEST | {"whole_texts": True}
ROPES = {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
         "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.5}}
LFM3 = new_dtype(without(architecture(
    "Lfm3ForCausalLM", "lfm3", head_dim=8, norm_eps=1e-5, conv_L_cache=5, conv_bias=False, sliding_window=6,
    num_hidden_layers=4, tie_word_embeddings=True, pad_token_id=0, rope_parameters=ROPES,
    layer_types=["conv", "sliding_attention", "full_attention", "conv"]), "rope_theta"))
LAGUNA = new_dtype(without(architecture(
    "LagunaForCausalLM", "laguna", head_dim=8, rms_norm_eps=1e-6, hidden_act="silu", attention_bias=False,
    num_hidden_layers=3, sliding_window=7, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=10,
    shared_expert_intermediate_size=14, moe_routed_scaling_factor=1.8, gating=True,
    layer_types=["full_attention", "sliding_attention", "sliding_attention"],
    rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
                     "full_attention": {"rope_type": "default", "rope_theta": 500000.0, "partial_rotary_factor": 0.5}}),
    "rope_theta"))
CORRECTION = {"keep_float32": ["e_score_correction_bias"]}
THINKER = dict(audio_config=dict(model_type="qwen2_5_omni_audio_encoder", d_model=16, encoder_ffn_dim=16, encoder_layers=1,
                                 encoder_attention_heads=2, num_mel_bins=8, max_source_positions=16, output_dim=24),
               image_token_index=60, video_token_index=59, audio_token_index=58)
THINKER3 = dict(audio_config=dict(model_type="qwen3_omni_moe_audio_encoder", d_model=16, encoder_ffn_dim=16, encoder_layers=1,
                                  encoder_attention_heads=2, num_mel_bins=8, max_source_positions=16, output_dim=24,
                                  downsample_hidden_size=8),
                image_token_id=60, video_token_id=59, audio_token_id=58)

# name -> (config.json, storage)
MODELS = {
    "lfm3": (LFM3, WHOLE),
    "lfm3-no-gate-untied-f16": (
        LFM3 | dict(use_attention_gate=False, use_sandwich_norm=False, tie_word_embeddings=False, conv_bias=True,
                    attention_bias=True, num_key_value_heads=1, conv_L_cache=3, dtype="float16",
                    layer_types=["sliding_attention", "conv", "full_attention", "full_attention"]), WHOLE),
    "lfm3-three-heads": (
        LFM3 | dict(num_attention_heads=3, num_key_value_heads=3, head_dim=10, conv_L_cache=7, sliding_window=20,
                    num_hidden_layers=5, layer_types=["conv", "full_attention", "conv", "conv", "sliding_attention"]),
        WHOLE | {"shards": 2}),
    "lfm3-vl": (
        multimodal("Lfm3VlForConditionalGeneration", "lfm3_vl", LFM3 | {"torch_dtype": "bfloat16"}, dict(
            model_type="lfm3_vl_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            patch_size=4), image_token_id=60, video_token_id=59, projector_hidden_size=20), WHOLE),
    "laguna": (LAGUNA, NEWEST | CORRECTION),
    "laguna-heads-of-layers-f16": (
        LAGUNA | dict(num_attention_heads_per_layer=[4, 6, 2], gating="per-head", attention_bias=True, dtype="float16",
                      mlp_layer_types=["sparse", "dense", "sparse"], tie_word_embeddings=True), NEWEST | CORRECTION),
    "laguna-gates-of-columns": (
        LAGUNA | dict(gating="per-element", num_key_value_heads=4, num_attention_heads_per_layer=[8, 4, 4],
                      num_experts=5, num_experts_per_tok=3, moe_routed_scaling_factor=1.0),
        NEWEST | CORRECTION | {"shards": 2}),
    "qwen25-omni": (
        multimodal("Qwen2_5OmniThinkerForConditionalGeneration", "qwen2_5_omni_thinker", QWEN_VL | dict(
            tie_word_embeddings=False, model_type="qwen2_5_omni_text",
            rope_scaling={"mrope_section": [1, 1, 1], "rope_type": "default", "type": "default"}),
            QWEN2_VISION | dict(model_type="qwen2_5_omni_vision_encoder"), **THINKER),
        NEWEST),
    "qwen3-omni": (
        multimodal("Qwen3OmniMoeThinkerForConditionalGeneration", "qwen3_omni_moe_thinker", QWEN3_VL_MOE | dict(
            tie_word_embeddings=False, model_type="qwen3_omni_moe_text"),
            QWEN3_VISION | dict(model_type="qwen3_omni_moe_vision_encoder"), **THINKER3), NEWEST),
}
