// DeepSeek V2, V2-Lite, V2.5 and Coder V2: latent attention, rotated in pairs, and behind the first
// layers experts that are chosen by a softmax, in the big ones from the groups with the best
// expert. DeepSeek-OCR 2 is a multimodal checkpoint whose text model has Llama's attention and
// these experts. Source: models/deepseek_v2 and models/deepseek_ocr2 in `transformers`; the factor
// of the scores with yarn and norm_topk_prob as the model's own code has them.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

// Groups count only where topk_method says so; one is as good as its best expert.
void read_choice(const JsonReader& config, ModelConfig& model) {
  RouteRule& route = model.experts.route;
  route.score = RouterScore::kSoftmax;
  route.group_best = 1;
  model.experts.has_choice_bias = false;
  const std::string method = config.string_or("topk_method", "greedy");
  if (method == "group_limited_greedy") return;
  if (method == "greedy") {
    route.num_groups = 1;
    route.top_groups = 1;
    return;
  }
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are greedy, group_limited_greedy",
                          config.path_of("topk_method"), method));
}

ModelConfig read_deepseek_v2(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_intermediate = 11008}));
  read_latent_attention(config, {}, {.interleaved = true}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 64,
                         .default_top_k = 6,
                         .default_intermediate = 1407,
                         .default_num_shared = 2},
                        model);
  // As the model's own code has it: either the one or the other. `transformers` passes over it.
  RouteRule& route = model.experts.route;
  route.normalises = config.boolean_or("norm_topk_prob", false) && route.top_k > 1;
  if (route.normalises) route.scale = 1.0F;
  read_choice(config, model);
  read_first_sparse_layer(config, 0, model);
  return model;
}

ModelConfig read_deepseek_ocr2_text(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.head_dim = "", .default_vocab_size = 102400});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 64,
                         .default_top_k = 6,
                         .default_intermediate = 1407,
                         .default_num_shared = 2},
                        model);
  model.experts.route.normalises = false;
  read_choice(config, model);
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 0, model);
  return model;
}

constexpr auto kDeepseekV2Fields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("scoring_func", R"(["softmax"])", "scores are those of a softmax"),
                    read_or_null("norm_topk_prob"),
                    read_or_null("num_experts_per_tok"),
                    read_or_null("topk_method"),
                    read_or_null("n_group"),
                    read_or_null("topk_group"),
                    harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
                    harmless("ep_size", "says how training dealt out the experts"),
                }),
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kDeepseekOcr2TextFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("mlp_layer_types"),
                    read_or_null("num_experts_per_tok"),
                    read_or_null("topk_method"),
                    read_or_null("n_group"),
                    read_or_null("topk_group"),
                    harmless("head_dim", "it is hidden_size / num_attention_heads, always"),
                    harmless_if("scoring_func", R"(["softmax"])", "scores are those of a softmax"),
                    harmless_if("norm_topk_prob", "[false]", "weights are not normalised"),
                    harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
                }),
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kDeepseekOcr2TextAliases =
    std::to_array<FieldAlias>({{"num_experts", "n_routed_experts"}});

constexpr auto kDeepseekOcr2TextNames = std::to_array<std::string_view>({"DeepseekOcr2TextModel"});
constexpr auto kDeepseekOcr2TextTypes = std::to_array<std::string_view>({"deepseek_ocr2_text"});
constexpr auto kDeepseekOcr2Names =
    std::to_array<std::string_view>({"DeepseekOcr2ForConditionalGeneration"});
constexpr auto kDeepseekOcr2Types = std::to_array<std::string_view>({"deepseek_ocr2"});

constexpr auto kDeepseekOcr2TextTensors = join_tensors(kLlamaOuterTensors,
                                                       kLlamaNormTensors,
                                                       kLlamaAttentionTensors,
                                                       kLlamaQkvBiasTensors,
                                                       kLlamaOBiasTensors,
                                                       kLlamaMlpTensors,
                                                       kExpertTensors,
                                                       kDeepSeekExpertTensors);

constexpr auto kDeepseekOcr2Ignored = std::to_array<std::string_view>({
    "vision_tower.*",
    "sam_model.*",
    "qwen2_model.*",
    "projector.*",
    "multi_modal_projector.*",
    "view_separator",
    "view_seperator",
});

constexpr auto kDeepseekV2Names = std::to_array<std::string_view>({"DeepseekV2ForCausalLM"});
constexpr auto kDeepseekV2Types = std::to_array<std::string_view>({"deepseek_v2"});

constexpr auto kDeepseekV2Tensors = join_tensors(kLlamaOuterTensors,
                                                 kLlamaNormTensors,
                                                 kLatentAttentionTensors,
                                                 kLlamaMlpTensors,
                                                 kExpertTensors,
                                                 kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kDeepSeekV2;
constexpr Architecture kDeepSeekV2 = {
    .names = kDeepseekV2Names,
    .model_types = kDeepseekV2Types,
    .prefix = "model.",
    .read_config = read_deepseek_v2,
    .fields = kDeepseekV2Fields,
    .tensors = kDeepseekV2Tensors,
    .ignored = kRotaryTables,
};

extern const Architecture kDeepSeekOcr2Text, kDeepSeekOcr2;
constexpr Architecture kDeepSeekOcr2Text = {
    .names = kDeepseekOcr2TextNames,
    .model_types = kDeepseekOcr2TextTypes,
    .prefix = "model.",
    .read_config = read_deepseek_ocr2_text,
    .fields = kDeepseekOcr2TextFields,
    .aliases = kDeepseekOcr2TextAliases,
    .tensors = kDeepseekOcr2TextTensors,
    .ignored = kRotaryTables,
};
constexpr Architecture kDeepSeekOcr2 = multimodal_of(kDeepseekOcr2Names,
                                                     kDeepseekOcr2Types,
                                                     R"({"model_type": "deepseek_ocr2_text"})",
                                                     kMultimodalFields,
                                                     kDeepseekOcr2Ignored);

}  // namespace tgi
