"""Text models inside of checkpoints that read pages or write down what is said: see make_tiny_checkpoints."""

from .dense_rms import ERNIE, GRANITE, HUNYUAN
from .experts import DEEPSEEK2
from .first import LLAMA, QWEN3
from .newest import QWEN3_5, ZERO, multimodal
from .spelling import without
from .wrapped import NEWEST, SMALL, TIED, UNTIED, seeing

TIES = NEWEST | {"embedding_scale": 0.25}
SCALED = NEWEST | {"embedding_scale": 0.05}
PADDLE = without(ERNIE, "rope_theta") | UNTIED | dict(
    model_type="paddleocr_vl_text", rope_parameters=dict(rope_type="default", rope_theta=500000.0, mrope_section=[2, 2, 1]))
PADDLE_VISION = without(SMALL, "image_size") | dict(model_type="paddleocr_vl_vision", image_size=8, spatial_merge_size=2)
HUNYUAN_VL = without(HUNYUAN, "rope_theta", "pad_token_id") | UNTIED | dict(
    model_type="hunyuan_vl_text", pad_token_id=0, rope_theta=10000.0,
    rope_scaling=dict(type="xdrope", alpha=50.0, beta_fast=32, beta_slow=1, factor=1.0, mscale=1.0, mscale_all_dim=1.0,
                      xdrope_section=[2, 1, 1, 1]))
HUNYUAN_VISION = without(SMALL, "image_size") | dict(
    model_type="hunyuan_vl_vision", out_hidden_size=24, text_hidden_size=24, img_max_token_num=16, max_image_size=64)
OCR2 = without(DEEPSEEK2, "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "first_k_dense_replace",
               "moe_layer_freq", "aux_loss_alpha", "seq_aux", "ep_size", "scoring_func", "norm_topk_prob") | dict(
    model_type="deepseek_ocr2_text", num_key_value_heads=2, mlp_layer_types=["dense", "sparse"], routed_scaling_factor=1.5)
OCR2_VISION = dict(
    model_type="deepseek_ocr2_vision",
    sam_config=dict(hidden_size=16, output_channels=8, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=16,
                    window_size=1, global_attn_indexes=[0], mlp_dim=16, downsample_channels=[8, 16]),
    encoder_config=dict(vocab_size=10, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
                        num_key_value_heads=2))
# As many tokens for images as for text, for transformers cuts the table in two when it writes it.
MOLMO2 = without(QWEN3, "architectures", "rms_norm_eps", "attention_bias", "use_sliding_window", "sliding_window", "max_window_layers") | dict(
    model_type="molmo2_text", additional_vocab_size=101, qk_norm_type="qwen3", layer_norm_eps=1e-6, qkv_bias=False, norm_after=False)
MOLMO2_PARTS = dict(
    vision_config=SMALL | dict(model_type="molmo2_vision", image_size=[8, 8], head_dim=8, num_key_value_heads=2),
    adapter_config=dict(vision_feature_layer=[-1], hidden_size=16, num_attention_heads=2, num_key_value_heads=2, head_dim=8,
                        intermediate_size=16, text_hidden_size=36))
GRANITE4 = GRANITE | dict(model_type="granite4_vision_text", logits_scaling=1.0)
DOCLING = GRANITE | dict(model_type="granite_docling_text", pad_token_id=0)
DOCLING_VISION = SMALL | dict(model_type="granite_docling_vision", out_hidden_size=24, scale_factor=2, num_hidden_layers=2,
                              deepstack_visual_indexes=[0], use_fine_route=True)
AUDIO = dict(num_mel_bins=8, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)


def hearing(name, model_type, text, audio, **changes):
    return without(multimodal(name + "ForConditionalGeneration", model_type, text, audio_config=audio, audio_token_id=60),
                   "vision_config") | changes


def said_twice(config):
    """The classes that tie where either part says so, and their own says so when it says nothing."""
    return config | dict(text_config=config["text_config"] | dict(tie_word_embeddings=config["tie_word_embeddings"]))


# name -> (config.json, storage)
MODELS = {
    "paddleocr-vl": (said_twice(seeing("PaddleOCRVL", "paddleocr_vl", PADDLE, PADDLE_VISION)), NEWEST),
    "paddleocr-vl-biases-tied-f16": (
        seeing("PaddleOCRVL", "paddleocr_vl", PADDLE | TIED | dict(use_bias=True, num_key_value_heads=1), PADDLE_VISION,
               torch_dtype="float16"), TIES),
    "paddleocr-vl-three-heads": (
        said_twice(seeing("PaddleOCRVL", "paddleocr_vl", PADDLE | dict(
            num_attention_heads=3, num_key_value_heads=3, num_hidden_layers=3, head_dim=8,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 1, 1])), PADDLE_VISION)),
        NEWEST | {"shards": 2}),
    "hunyuan-vl": (said_twice(seeing("HunYuanVL", "hunyuan_vl", HUNYUAN_VL, HUNYUAN_VISION)), NEWEST),
    "hunyuan-vl-biases-tied-f16": (
        seeing("HunYuanVL", "hunyuan_vl", without(HUNYUAN_VL, "rope_scaling", "rope_theta") | TIED | dict(
            attention_bias=True, num_key_value_heads=1,
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 2, 1])), HUNYUAN_VISION,
            torch_dtype="float16"), TIES),
    "deepseek-ocr2": (seeing("DeepseekOcr2", "deepseek_ocr2", OCR2 | UNTIED, OCR2_VISION), NEWEST),
    "deepseek-ocr2-groups-f16": (
        seeing("DeepseekOcr2", "deepseek_ocr2", OCR2 | UNTIED | dict(
            topk_method="group_limited_greedy", n_group=3, topk_group=2, attention_bias=True, num_key_value_heads=4,
            n_shared_experts=1, num_experts_per_tok=3, mlp_layer_types=["sparse", "sparse"]), OCR2_VISION,
            torch_dtype="float16"), NEWEST),
    "molmo2": (seeing("Molmo2", "molmo2", MOLMO2 | UNTIED, None, **MOLMO2_PARTS), NEWEST),
    "molmo2-olmo-norms-f16": (
        seeing("Molmo2", "molmo2", MOLMO2 | UNTIED | dict(
            qk_norm_type="olmo", norm_after=True, qkv_bias=True, num_key_value_heads=1), None, **MOLMO2_PARTS, torch_dtype="float16"),
        NEWEST),
    "molmo2-scaled-layers": (
        seeing("Molmo2", "molmo2", MOLMO2 | UNTIED | dict(
            num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=3, rope_scaling_layers=[0, 2],
            rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)), None, **MOLMO2_PARTS),
        NEWEST | {"shards": 2}),
    "granite4-vision": (
        seeing("Granite4Vision", "granite4_vision", GRANITE4 | UNTIED, dict(
            model_type="clip_vision_model", hidden_size=64, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            image_size=8, patch_size=4), qformer_config=dict(
                model_type="blip_2_qformer", num_hidden_layers=1, intermediate_size=16), downsample_rate="1/2",
            deepstack_layer_map=[[-1, 0]], spatial_target_layers=[1], image_token_index=60), SCALED | {"whole_texts": True}),
    "granite-docling-f16": (
        seeing("GraniteDocling", "granite_docling", DOCLING | TIED | dict(attention_bias=True, mlp_bias=True), DOCLING_VISION,
               torch_dtype="float16"), SCALED),
    "minicpm-ocr": (
        seeing("MiniCPMOcr", "minicpm_ocr", QWEN3_5 | UNTIED, SMALL | dict(model_type="minicpm_ocr_vision", insert_layer_id=0),
               insert_layer_id=0), NEWEST | ZERO),
    "qwen3-asr": (
        hearing("Qwen3ASR", "qwen3_asr", QWEN3 | UNTIED, dict(
            model_type="qwen3_asr_encoder", num_mel_bins=8, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=16,
            d_model=16, output_dim=24, downsample_hidden_size=8)), NEWEST),
    "glm-asr-tied": (hearing("GlmAsr", "glmasr", LLAMA | TIED, AUDIO | dict(model_type="glmasr_encoder")), TIES),
    "fun-asr-nano": (
        hearing("FunAsrNano", "fun_asr_nano", QWEN3 | UNTIED, AUDIO | dict(
            model_type="fun_asr_nano_encoder", num_timestamp_prediction_layers=1), adaptor_config=dict(
                hidden_size=36, intermediate_size=9, num_attention_heads=2, num_hidden_layers=1, projector_hidden_size=8)),
        NEWEST),
    "moss-transcribe": (
        hearing("MossTranscribeDiarize", "moss_transcribe_diarize", QWEN3 | UNTIED, AUDIO), NEWEST),
}
