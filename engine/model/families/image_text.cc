// Checkpoints that see images or films around a text model of another family, which text_config
// names: Idefics 3 and SmolVLM, InternVL 3, LFM2-VL, LightOnOCR, FastVLM, PerceptionLM, GOT-OCR 2,
// ViP-LLaVA, Video-LLaVA, LLaVA-NeXT-Video, and BLIP-2 and InstructBLIP around OPT or Llama.
// Source: the models of these names in `transformers`.
#include <array>
#include <span>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kImageTextFields =
    join_fields(kMultimodalFields,
                std::to_array<KnownField>({
                    harmless("vocab_size", "text_config says it"),
                    harmless("hidden_size", "text_config says it"),
                    harmless("_pad_token_id", "sequences are never padded"),
                    harmless("tie_embedding", "whether a head is stored says it"),
                    harmless("ignore_index", kOnlyTraining),
                    harmless("scale_factor", kImages),
                    harmless("downsample_ratio", kImages),
                    harmless("downsample_factor", kImages),
                    harmless("image_grid_pinpoints", kImages),
                    harmless("projector_hidden_size", kImages),
                    harmless("projector_bias", kImages),
                    harmless("projector_use_layernorm", kImages),
                    harmless("projector_layernorm_eps", kImages),
                    harmless("projector_pooling_ratio", kImages),
                    harmless("vision_feature_layers", kImages),
                    harmless("vision_use_cls_token", kImages),
                    harmless("spatial_pool_mode", kImages),
                    harmless("spatial_pool_stride", kImages),
                    harmless("video_token_index", kImages),
                    harmless("video_seq_length", kImages),
                    harmless("use_image_newline_parameter", kImages),
                    harmless("do_image_splitting", kImages),
                    harmless("max_image_tokens", kImages),
                    harmless("min_image_tokens", kImages),
                    harmless("max_num_patches", kImages),
                    harmless("max_pixels_tolerance", kImages),
                    harmless("max_tiles", kImages),
                    harmless("min_tiles", kImages),
                    harmless("tile_size", kImages),
                    harmless("encoder_patch_size", kImages),
                    harmless("use_image_special_tokens", kImages),
                    harmless("use_thumbnail", kImages),
                }));

constexpr auto kImageTextIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "vision_model.*",
    "vision_encoder.*",
    "vision_projection.*",
    "image_tower.*",
    "video_tower.*",
    "connector.*",
    "multi_modal_projector.*",
    "image_newline",
});

constexpr auto kBlip2Fields =
    join_fields(kImageTextFields,
                std::to_array<KnownField>({
                    harmless("qformer_config", kImages),
                    harmless("num_query_tokens", kImages),
                    harmless("image_text_hidden_size", kImages),
                    harmless("use_decoder_only_language_model", "text_config says it"),
                }));
constexpr auto kBlip2Ignored = std::to_array<std::string_view>({
    "vision_model.*",
    "qformer.*",
    "query_tokens",
    "language_projection.*",
});

constexpr auto kIdefics3Names =
    std::to_array<std::string_view>({"Idefics3ForConditionalGeneration"});
constexpr auto kIdefics3Types = std::to_array<std::string_view>({"idefics3"});
constexpr auto kSmolVlmNames = std::to_array<std::string_view>({"SmolVLMForConditionalGeneration"});
constexpr auto kSmolVlmTypes = std::to_array<std::string_view>({"smolvlm"});
constexpr auto kInternVlNames =
    std::to_array<std::string_view>({"InternVLForConditionalGeneration"});
constexpr auto kInternVlTypes = std::to_array<std::string_view>({"internvl"});
constexpr auto kLfm2VlNames = std::to_array<std::string_view>({"Lfm2VlForConditionalGeneration"});
constexpr auto kLfm2VlTypes = std::to_array<std::string_view>({"lfm2_vl", "lfm2-vl"});
constexpr auto kLightOnNames =
    std::to_array<std::string_view>({"LightOnOcrForConditionalGeneration"});
constexpr auto kLightOnTypes = std::to_array<std::string_view>({"lighton_ocr"});
constexpr auto kFastVlmNames = std::to_array<std::string_view>({"FastVlmForConditionalGeneration"});
constexpr auto kFastVlmTypes = std::to_array<std::string_view>({"fast_vlm"});
constexpr auto kGotOcrNames = std::to_array<std::string_view>({"GotOcr2ForConditionalGeneration"});
constexpr auto kGotOcrTypes = std::to_array<std::string_view>({"got_ocr2"});
constexpr auto kAroundLlamaNames = std::to_array<std::string_view>({
    "PerceptionLMForConditionalGeneration",
    "VipLlavaForConditionalGeneration",
    "VideoLlavaForConditionalGeneration",
    "LlavaNextVideoForConditionalGeneration",
});
constexpr auto kAroundLlamaTypes = std::to_array<std::string_view>(
    {"perception_lm", "vipllava", "video_llava", "llava_next_video"});

constexpr auto kBlip2Names = std::to_array<std::string_view>({
    "Blip2ForConditionalGeneration",
    "InstructBlipForConditionalGeneration",
    "InstructBlipVideoForConditionalGeneration",
});
constexpr auto kBlip2Types =
    std::to_array<std::string_view>({"blip-2", "instructblip", "instructblipvideo"});

constexpr std::string_view kLlamaText = R"({"model_type": "llama"})";
constexpr std::string_view kSmallEpsText = R"({"model_type": "llama", "rms_norm_eps": 1e-5})";
constexpr std::string_view kLightOnText =
    R"({"model_type": "qwen3", "tie_word_embeddings": true, "head_dim": 128, "hidden_size": 1024,
        "intermediate_size": 3072, "max_position_embeddings": 40960, "num_attention_heads": 16,
        "num_hidden_layers": 28, "num_key_value_heads": 8, "rope_theta": 1000000,
        "vocab_size": 151936})";
constexpr std::string_view kFastVlmText =
    R"({"model_type": "qwen2", "hidden_size": 3584, "vocab_size": 152128,
        "intermediate_size": 18944, "num_attention_heads": 28, "num_key_value_heads": 4,
        "num_hidden_layers": 28})";
constexpr std::string_view kGotOcrText =
    R"({"model_type": "qwen2", "tie_word_embeddings": true, "vocab_size": 151860,
        "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 32768,
        "rope_theta": 1000000.0})";

constexpr Architecture around(std::span<const std::string_view> names,
                              std::span<const std::string_view> model_types,
                              std::string_view default_text,
                              std::string_view prefix = "language_model.") {
  return multimodal_of(names, model_types, default_text, kImageTextFields, kImageTextIgnored,
                       prefix);
}

}  // namespace

extern const Architecture kIdefics3, kSmolVlm, kInternVl, kLfm2Vl, kLightOnOcr, kFastVlm, kGotOcr2,
    kAroundLlama, kBlip2;
constexpr Architecture kIdefics3 =
    around(kIdefics3Names, kIdefics3Types, kSmallEpsText, "text_model.");
constexpr Architecture kSmolVlm =
    around(kSmolVlmNames, kSmolVlmTypes, kSmallEpsText, "text_model.");
constexpr Architecture kInternVl = around(
    kInternVlNames, kInternVlTypes, R"({"model_type": "qwen2", "tie_word_embeddings": true})");
constexpr Architecture kLfm2Vl = around(kLfm2VlNames, kLfm2VlTypes, R"({"model_type": "lfm2"})");
constexpr Architecture kLightOnOcr = around(kLightOnNames, kLightOnTypes, kLightOnText);
constexpr Architecture kFastVlm = around(kFastVlmNames, kFastVlmTypes, kFastVlmText);
constexpr Architecture kGotOcr2 = around(kGotOcrNames, kGotOcrTypes, kGotOcrText);
constexpr Architecture kBlip2 = multimodal_of(
    kBlip2Names, kBlip2Types, R"({"model_type": "opt"})", kBlip2Fields, kBlip2Ignored);
constexpr Architecture kAroundLlama = around(kAroundLlamaNames, kAroundLlamaTypes, kLlamaText);

}  // namespace tgi
