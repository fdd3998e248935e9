// LLaVA 1.5, LLaVA-NeXT and LLaVA-OneVision: multimodal checkpoints around the text model that
// text_config names. Source: models/llava, llava_next and llava_onevision in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kLlavaFields = join_fields(kMultimodalFields,
                                          std::to_array<KnownField>({
                                              harmless("vocab_size", "text_config says it"),
                                              harmless("hidden_size", "text_config says it"),
                                              harmless("ignore_index", kOnlyTraining),
                                              harmless("image_grid_pinpoints", kImages),
                                              harmless("use_image_newline_parameter", kImages),
                                              harmless("vision_aspect_ratio", kImages),
                                              harmless("video_token_index", kImages),
                                          }));

constexpr auto kLlavaNames = std::to_array<std::string_view>(
    {"LlavaForConditionalGeneration", "LlavaNextForConditionalGeneration"});
constexpr auto kLlavaTypes = std::to_array<std::string_view>({"llava", "llava_next"});
constexpr auto kLlavaOneVisionNames =
    std::to_array<std::string_view>({"LlavaOnevisionForConditionalGeneration"});
constexpr auto kLlavaOneVisionTypes = std::to_array<std::string_view>({"llava_onevision"});

constexpr auto kLlavaIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "multi_modal_projector.*",
    "image_newline",
});

}  // namespace

extern const Architecture kLlava;
constexpr Architecture kLlava = multimodal_of(
    kLlavaNames, kLlavaTypes, R"({"model_type": "llama"})", kLlavaFields, kLlavaIgnored);

extern const Architecture kLlavaOneVision;
constexpr Architecture kLlavaOneVision = multimodal_of(kLlavaOneVisionNames,
                                                       kLlavaOneVisionTypes,
                                                       R"({"model_type": "qwen2"})",
                                                       kLlavaFields,
                                                       kLlavaIgnored);

}  // namespace tgi
