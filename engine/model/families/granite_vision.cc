// Granite 4 Vision and Granite Docling: multimodal checkpoints whose text model is Granite's dense
// one. Source: models/granite4_vision and models/granite_docling in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kGranite4VisionNames =
    std::to_array<std::string_view>({"Granite4VisionForConditionalGeneration"});
constexpr auto kGranite4VisionTypes = std::to_array<std::string_view>({"granite4_vision"});
constexpr auto kGraniteDoclingNames =
    std::to_array<std::string_view>({"GraniteDoclingForConditionalGeneration"});
constexpr auto kGraniteDoclingTypes = std::to_array<std::string_view>({"granite_docling"});

constexpr auto kGranite4VisionFields =
    join_fields(kMultimodalFields,
                std::to_array<KnownField>({
                    harmless("image_grid_pinpoints", kImages),
                    harmless("use_image_newline_parameter", kImages),
                    harmless("downsample_rate", kImages),
                    harmless("deepstack_layer_map", kImages),
                    harmless("spatial_vision_layer", kImages),
                    harmless("spatial_target_layers", kImages),
                    harmless("projector_dropout", kOnlyTraining),
                    harmless("qformer_config", kImages),
                }));
constexpr auto kGraniteDoclingFields =
    join_fields(kMultimodalFields,
                std::to_array<KnownField>({
                    harmless("density_router_hidden_size", kImages),
                    harmless("density_router_threshold", kImages),
                    harmless("density_router_loss_weight", kOnlyTraining),
                }));
constexpr auto kGraniteVisionIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "vision_model.*",
    "layerwise_projectors.*",
    "spatial_projectors.*",
    "connector.*",
    "density_router.*",
    "image_newline",
    "mtp.*",
});

}  // namespace

extern const Architecture kGranite4Vision, kGraniteDocling;
constexpr Architecture kGranite4Vision = multimodal_of(kGranite4VisionNames,
                                                       kGranite4VisionTypes,
                                                       R"({"model_type": "granite"})",
                                                       kGranite4VisionFields,
                                                       kGraniteVisionIgnored);
constexpr Architecture kGraniteDocling =
    multimodal_of(kGraniteDoclingNames,
                  kGraniteDoclingTypes,
                  R"({"model_type": "granite_docling_text", "tie_word_embeddings": true})",
                  kGraniteDoclingFields,
                  kGraniteVisionIgnored,
                  "text_model.");

}  // namespace tgi
