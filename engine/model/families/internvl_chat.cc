// InternVL 1.5 to 3 as they were published: multimodal checkpoints around the text model that
// llm_config names.
// Source: configuration_internvl_chat.py of the published models.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

constexpr auto kInternVlChatFields = join_fields(
    kMultimodalFields,
    std::to_array<KnownField>({
        harmless("hidden_size", "the text model's own part says it"),
        harmless("downsample_ratio", kImages),
        harmless("dynamic_image_size", kImages),
        harmless("force_image_size", kImages),
        harmless("image_fold", kImages),
        harmless("max_dynamic_patch", kImages),
        harmless("min_dynamic_patch", kImages),
        harmless("pad2square", kImages),
        harmless("ps_version", kImages),
        harmless("select_layer", kImages),
        harmless("use_thumbnail", kImages),
        harmless("template", "names a template of the published code"),
        harmless("system_message", "is of the published code's templates"),
        harmless_if("use_backbone_lora", "[0, false]", "adapters were merged into the weights"),
        harmless_if("use_llm_lora", "[0, false]", "adapters were merged into the weights"),
    }));

constexpr auto kInternVlChatAliases = std::to_array<FieldAlias>({{"llm_config", "text_config"}});

constexpr auto kInternVlChatNames = std::to_array<std::string_view>({"InternVLChatModel"});
constexpr auto kInternVlChatTypes = std::to_array<std::string_view>({"internvl_chat"});
constexpr auto kInternVlChatIgnored = std::to_array<std::string_view>({"vision_model.*", "mlp1.*"});

constexpr Architecture with_aliases(Architecture outer) {
  outer.aliases = kInternVlChatAliases;
  return outer;
}

}  // namespace

extern const Architecture kInternVlChat;
constexpr Architecture kInternVlChat = with_aliases(multimodal_of(kInternVlChatNames,
                                                                  kInternVlChatTypes,
                                                                  R"({"model_type": "internlm2"})",
                                                                  kInternVlChatFields,
                                                                  kInternVlChatIgnored));

}  // namespace tgi
