// Checkpoints that see images around a chat model of another family, which text_config names: Aya
// Vision, Command A Vision, DeepSeek-VL, Janus, Idefics 2, Kimi K2.5, MiniCPM-V 4.6 and 4.7,
// MiniCPM-OCR, Ovis 2, Qianfan-OCR, VideoLLaMA 3, HyperCLOVA X Vision and Nemotron's omni models.
// Source: the models of these names in `transformers`.
#include <array>
#include <span>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kImageChatFields = join_fields(kMultimodalFields,
                                              std::to_array<KnownField>({
                                                  harmless("vocab_size", "text_config says it"),
                                                  harmless("hidden_size", "text_config says it"),
                                                  harmless("ignore_index", kOnlyTraining),
                                                  harmless("adapter_layer_norm_eps", kImages),
                                                  harmless("alignment_intermediate_size", kImages),
                                                  harmless("audio_config", kSounds),
                                                  harmless("audio_token_id", kSounds),
                                                  harmless("downsample_factor", kImages),
                                                  harmless("downsample_mode", kImages),
                                                  harmless("downsample_ratio", kImages),
                                                  harmless("drop_vision_last_layer", kImages),
                                                  harmless("force_image_size", kImages),
                                                  harmless("high_res_vision_config", kImages),
                                                  harmless("image_end_id", kImages),
                                                  harmless("image_size", kImages),
                                                  harmless("image_start_id", kImages),
                                                  harmless("insert_layer_id", kImages),
                                                  harmless("media_placeholder_token_id", kImages),
                                                  harmless("merge_kernel_size", kImages),
                                                  harmless("merger_times", kImages),
                                                  harmless("newline_id", kImages),
                                                  harmless("patch_size", kImages),
                                                  harmless("perceiver_config", kImages),
                                                  harmless("projection_hidden_size", kImages),
                                                  harmless("projection_layer_norm_eps", kImages),
                                                  harmless("projector_hidden_size", kImages),
                                                  harmless("slice_end_id", kImages),
                                                  harmless("slice_start_id", kImages),
                                                  harmless("use_unified_vision_chunk", kImages),
                                                  harmless("video_placeholder", kImages),
                                                  harmless("video_pruning_rate", kImages),
                                                  harmless("video_temporal_patch_size", kImages),
                                                  harmless("vision_hidden_size", kImages),
                                                  harmless("visual_indicator_token_ids", kImages),
                                                  harmless("vq_config", kImages),
                                              }));

constexpr auto kImageChatIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "vision_model.*",
    "vision_projector.*",
    "high_res_vision_model.*",
    "high_res_vision_neck.*",
    "high_res_vision_proj.*",
    "high_res_vision_alpha",
    "visual_embeddings_table.*",
    "multi_modal_projector.*",
    "mm_projector.*",
    "mlp1.*",
    "projector.*",
    "connector.*",
    "aligner.*",
    "merger.*",
    "vqmodel.*",
    "generation_embeddings.*",
    "generation_aligner.*",
    "generation_head.*",
    "vision_final_layernorm.*",
    "sound_encoder.*",
    "sound_projection.*",
    "audio_tower.*",
    "embed_audio.*",
});

constexpr auto kAyaVisionNames =
    std::to_array<std::string_view>({"AyaVisionForConditionalGeneration"});
constexpr auto kAyaVisionTypes = std::to_array<std::string_view>({"aya_vision"});
constexpr auto kCohere2VisionNames =
    std::to_array<std::string_view>({"Cohere2VisionForConditionalGeneration"});
constexpr auto kCohere2VisionTypes = std::to_array<std::string_view>({"cohere2_vision"});
constexpr auto kDeepSeekVlNames = std::to_array<std::string_view>(
    {"DeepseekVLForConditionalGeneration", "DeepseekVLHybridForConditionalGeneration",
     "JanusForConditionalGeneration"});
constexpr auto kDeepSeekVlTypes =
    std::to_array<std::string_view>({"deepseek_vl", "deepseek_vl_hybrid", "janus"});
constexpr auto kIdefics2Names =
    std::to_array<std::string_view>({"Idefics2ForConditionalGeneration"});
constexpr auto kIdefics2Types = std::to_array<std::string_view>({"idefics2"});
constexpr auto kKimiK25Names = std::to_array<std::string_view>(
    {"Kimi_K25ForConditionalGeneration", "KimiK25ForConditionalGeneration"});
constexpr auto kKimiK25Types = std::to_array<std::string_view>({"kimi_k25"});
constexpr auto kMiniCpmVNames = std::to_array<std::string_view>(
    {"MiniCPMV4_6ForConditionalGeneration", "MiniCPMV4_7ForConditionalGeneration"});
constexpr auto kMiniCpmVTypes = std::to_array<std::string_view>({"minicpmv4_6", "minicpmv4_7"});
constexpr auto kMiniCpmOcrNames =
    std::to_array<std::string_view>({"MiniCPMOcrForConditionalGeneration"});
constexpr auto kMiniCpmOcrTypes = std::to_array<std::string_view>({"minicpm_ocr"});
constexpr auto kOvis2Names = std::to_array<std::string_view>({"Ovis2ForConditionalGeneration"});
constexpr auto kOvis2Types = std::to_array<std::string_view>({"ovis2"});
constexpr auto kQianfanOcrNames =
    std::to_array<std::string_view>({"QianfanOCRForConditionalGeneration"});
constexpr auto kQianfanOcrTypes = std::to_array<std::string_view>({"qianfan_ocr"});
constexpr auto kVideoLlama3Names =
    std::to_array<std::string_view>({"VideoLlama3ForConditionalGeneration"});
constexpr auto kVideoLlama3Types = std::to_array<std::string_view>({"video_llama_3"});
constexpr auto kHyperClovaVisionNames =
    std::to_array<std::string_view>({"HyperCLOVAXVisionV2ForConditionalGeneration"});
constexpr auto kHyperClovaVisionTypes = std::to_array<std::string_view>({"hyperclovax_vision_v2"});
constexpr auto kNemotronOmniNames =
    std::to_array<std::string_view>({"NemotronH_Omni_Reasoning_V3"});
constexpr auto kNemotronOmniTypes = std::to_array<std::string_view>({"nemotron_h_omni"});

constexpr Architecture chat_around(std::span<const std::string_view> names,
                                   std::span<const std::string_view> model_types,
                                   std::string_view default_text,
                                   std::string_view prefix = "language_model.") {
  return multimodal_of(names, model_types, default_text, kImageChatFields, kImageChatIgnored,
                       prefix);
}

// As its published files call them.
constexpr auto kNemotronOmniAliases = std::to_array<FieldAlias>({
    {"llm_config", "text_config"},
    {"sound_config", "audio_config"},
    {"img_context_token_id", "image_token_id"},
    {"video_context_token_id", "video_token_id"},
    {"sound_context_token_id", "audio_token_id"},
    {"vit_hidden_size", "vision_hidden_size"},
});

constexpr std::string_view kTiedCohere2 =
    R"({"model_type": "cohere2", "tie_word_embeddings": true})";

}  // namespace

extern const Architecture kAyaVision, kCohere2Vision, kDeepSeekVl, kIdefics2, kKimiK25, kMiniCpmV,
    kMiniCpmOcr, kOvis2, kQianfanOcr, kVideoLlama3, kHyperClovaVision, kNemotronOmni;
constexpr Architecture kAyaVision = chat_around(kAyaVisionNames, kAyaVisionTypes, kTiedCohere2);
constexpr Architecture kCohere2Vision =
    chat_around(kCohere2VisionNames, kCohere2VisionTypes, kTiedCohere2);
constexpr Architecture kDeepSeekVl = chat_around(
    kDeepSeekVlNames, kDeepSeekVlTypes, R"({"model_type": "llama", "tie_word_embeddings": true})");
constexpr Architecture kIdefics2 = chat_around(
    kIdefics2Names,
    kIdefics2Types,
    R"({"model_type": "mistral", "max_position_embeddings": 32768, "rms_norm_eps": 1e-5})",
    "text_model.");
constexpr Architecture kKimiK25 = chat_around(
    kKimiK25Names, kKimiK25Types, R"({"model_type": "deepseek_v3", "tie_word_embeddings": true})");
constexpr Architecture kMiniCpmV =
    chat_around(kMiniCpmVNames, kMiniCpmVTypes, R"({"model_type": "qwen3_5_text"})");
constexpr Architecture kMiniCpmOcr =
    chat_around(kMiniCpmOcrNames,
                kMiniCpmOcrTypes,
                R"({"model_type": "qwen3_5_text", "tie_word_embeddings": true})");
constexpr Architecture kOvis2 = chat_around(
    kOvis2Names, kOvis2Types, R"({"model_type": "qwen2", "tie_word_embeddings": true})");
constexpr Architecture kQianfanOcr =
    chat_around(kQianfanOcrNames, kQianfanOcrTypes, R"({"model_type": "qwen3"})");
constexpr Architecture kVideoLlama3 =
    chat_around(kVideoLlama3Names, kVideoLlama3Types, R"({"model_type": "qwen2"})");
constexpr Architecture kHyperClovaVision =
    chat_around(kHyperClovaVisionNames,
                kHyperClovaVisionTypes,
                R"({"model_type": "hyperclovax", "tie_word_embeddings": true})");
constexpr Architecture kNemotronOmni = [] {
  Architecture out =
      chat_around(kNemotronOmniNames, kNemotronOmniTypes, R"({"model_type": "nemotron_h"})");
  out.aliases = kNemotronOmniAliases;
  return out;
}();

}  // namespace tgi
