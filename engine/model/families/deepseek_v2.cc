// DeepSeek V2, V2-Lite, V2.5 and Coder V2: latent attention, rotated in pairs, and behind the first
// layers experts that are chosen by a softmax, in the big ones from the groups with the best
// expert. Source: models/deepseek_v2 in `transformers`; the factor of the scores with yarn and
// norm_topk_prob as the model's own code has them.
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

ModelConfig read_config(const JsonReader& config) {
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

constexpr auto kFields =
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

constexpr auto kNames = std::to_array<std::string_view>({"DeepseekV2ForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"deepseek_v2"});

constexpr auto kTensors = join_tensors(kLlamaOuterTensors,
                                       kLlamaNormTensors,
                                       kLatentAttentionTensors,
                                       kLlamaMlpTensors,
                                       kExpertTensors,
                                       kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kDeepSeekV2;
constexpr Architecture kDeepSeekV2 = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
