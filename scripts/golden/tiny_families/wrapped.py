"""Text models inside of checkpoints that see or hear, as published ones spell them: see make_tiny_checkpoints."""

from .dense_layernorm import COHERE2
from .dense_rms import GLM, GRANITE
from .experts import CORRECTION, DEEPSEEK3, GLM4_MOE
from .first import LLAMA, MISTRAL, QWEN2, QWEN3
from .more import NEMOTRON_H
from .newest import HYPERCLOVAX, QWEN3_5, SIGLIP, ZERO, multimodal
from .spelling import without

NEWEST = {"needs": [5, 24]}
UNTIED = dict(tie_word_embeddings=False)
TIED = dict(tie_word_embeddings=True)
# The class of transformers that sees forgets the scale of the logits, which the text model has by itself.
UNSCALED = dict(logit_scale=1.0)
SMALL = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4)
VL_VISION = dict(model_type="glm4v_vision", depth=1, hidden_size=16, intermediate_size=16, num_heads=2, image_size=8,
                 patch_size=4, out_hidden_size=24)
ROPE = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5, mrope_section=[1, 1, 0])
GLM4V = without(GLM, "head_dim", "attention_bias", "partial_rotary_factor", "rope_theta", "rope_scaling") | dict(
    rope_parameters=ROPE, model_type="glm4v_text", hidden_size=32, rms_norm_eps=1e-5)
GLM4V_MOE = without(GLM4_MOE, "use_qk_norm", "partial_rotary_factor", "rope_theta", "rope_scaling") | dict(
    rope_parameters=ROPE, model_type="glm4v_moe_text", attention_bias=True)
OCR = without(GLM, "attention_bias", "partial_rotary_factor", "rope_theta", "rope_scaling") | dict(
    rope_parameters=ROPE, model_type="glm_ocr_text", head_dim=8, rms_norm_eps=1e-5)
AUDIO_ENCODER = dict(model_type="granite_speech_encoder", input_dim=8, num_layers=1, hidden_dim=16, feedforward_mult=2,
                     num_heads=2, dim_head=8, output_dim=6, context_size=8, max_pos_emb=8, conv_kernel_size=3,
                     conv_expansion_factor=2)
QFORMER = dict(model_type="blip_2_qformer", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
               encoder_hidden_size=16, cross_attention_frequency=1, vocab_size=10)


def seeing(name, model_type, text, vision, **changes):
    return multimodal(name + "ForConditionalGeneration", model_type, text, vision, image_token_id=60) | changes


# name -> (config.json, storage)
MODELS = {
    "glm4v": (seeing("Glm4v", "glm4v", GLM4V | UNTIED, VL_VISION), NEWEST),
    "glm4v-three-heads-f16": (
        seeing("Glm46V", "glm46v", GLM4V | TIED | dict(
            num_attention_heads=3, num_key_value_heads=3, hidden_size=24,
            rope_parameters=ROPE | dict(partial_rotary_factor=1.0, mrope_section=[2, 1, 1])),
            VL_VISION, torch_dtype="float16"), NEWEST | {"embedding_scale": 0.25}),
    "glm4v-moe": (
        seeing("Glm4vMoe", "glm4v_moe", GLM4V_MOE | UNTIED, VL_VISION | dict(model_type="glm4v_moe_vision")),
        NEWEST | CORRECTION),
    "glm4v-moe-no-bias-f16": (
        seeing("Glm4vMoe", "glm4v_moe", GLM4V_MOE | UNTIED | dict(
            attention_bias=False, num_attention_heads=3, num_key_value_heads=1, first_k_dense_replace=0),
            VL_VISION | dict(model_type="glm4v_moe_vision"), torch_dtype="float16"), NEWEST | CORRECTION | {"shards": 2}),
    "glm-ocr": (
        seeing("GlmOcr", "glm_ocr", OCR | UNTIED, VL_VISION | dict(model_type="glm_ocr_vision")), NEWEST),
    "aya-vision": (
        seeing("AyaVision", "aya_vision", COHERE2 | TIED | UNSCALED, SIGLIP, downsample_factor=1, adapter_layer_norm_eps=1e-6),
        NEWEST | {"embedding_scale": 0.25}),
    "cohere2-vision-f16": (
        seeing("Cohere2Vision", "cohere2_vision", COHERE2 | TIED | UNSCALED | dict(num_key_value_heads=1), SIGLIP,
               downsample_factor=1, alignment_intermediate_size=16, torch_dtype="float16"),
        NEWEST | {"embedding_scale": 0.25}),
    "deepseek-vl": (seeing("DeepseekVL", "deepseek_vl", LLAMA | UNTIED, SIGLIP), NEWEST),
    "idefics2": (
        seeing("Idefics2", "idefics2", MISTRAL | UNTIED, SMALL | dict(model_type="idefics2_vision"),
               perceiver_config=dict(hidden_size=24, resampler_n_latents=2, resampler_depth=1, resampler_n_heads=2,
                                     resampler_head_dim=8, num_key_value_heads=1)), NEWEST),
    "kimi-k25": (
        seeing("Kimi_K25", "kimi_k25", DEEPSEEK3 | UNTIED, dict(
            model_type="kimi_k25_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            patch_size=4, pos_emb_height=2, pos_emb_width=2, pos_emb_time=1), projection_hidden_size=16, image_token_id=61),
        NEWEST | CORRECTION | {"rename": [("language_model.model.blocks.", "language_model.model.layers.")]}),
    "minicpm-v": (
        seeing("MiniCPMV4_6", "minicpmv4_6", QWEN3_5 | UNTIED, SMALL | dict(
            model_type="minicpmv4_6_vision", insert_layer_id=0), insert_layer_id=0, image_size=8), NEWEST | ZERO),
    "ovis2": (
        seeing("Ovis2", "ovis2", QWEN2 | TIED, SMALL | dict(model_type="ovis2_vision", vocab_size=10),
               vocab_size=61, hidden_size=24, visual_indicator_token_ids=[55, 56, 57, 58, 59]),
        NEWEST | {"embedding_scale": 0.25}),
    "qianfan-ocr": (
        seeing("QianfanOCR", "qianfan_ocr", QWEN3 | UNTIED, dict(
            model_type="qianfan_ocr_vision", hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            image_size=[8, 8], patch_size=[4, 4]), downsample_ratio=0.5),
        NEWEST | {"rename": [("language_model.model.encoder.layers.", "language_model.model.layers.")]}),
    "video-llama3": (
        seeing("VideoLlama3", "video_llama_3", QWEN2 | UNTIED, without(SMALL, "image_size") | dict(
            model_type="video_llama_3_vision"), video_token_id=59), NEWEST | {"shards": 2}),
    "hyperclovax-vision": (
        seeing("HyperCLOVAXVisionV2", "hyperclovax_vision_v2", HYPERCLOVAX | UNTIED, dict(
            model_type="qwen2_5_vl_vision", depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=24,
            patch_size=4, fullatt_block_indexes=[0])), NEWEST),
    "nemotron-h-omni": (
        multimodal("NemotronH_Omni_Reasoning_V3", "nemotron_h_omni", NEMOTRON_H | UNTIED, dict(
            model_type="radio", hidden_size=16, num_hidden_layers=1, num_attention_heads=2, patch_size=4, image_size=8, video_temporal_patch_size=2,
            max_img_size=16), vision_hidden_size=16, projector_hidden_size=8),
        NEWEST),
    "granite-speech": (
        without(multimodal("GraniteSpeechForConditionalGeneration", "granite_speech", GRANITE | UNTIED | dict(logits_scaling=1.0),
                           encoder_config=AUDIO_ENCODER, projector_config=QFORMER, audio_token_index=61,
                           has_lora_adapter=False, downsample_rate=2, window_size=4), "vision_config"),
        NEWEST | {"embedding_scale": 0.05}),
}
