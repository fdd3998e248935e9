// Phi-3.5-MoE: two experts for a token, chosen and weighed by a sparse mixer one after the other;
// LayerNorms, biases where the config says so. Source: models/phimoe in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_phimoe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 32064,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 6400,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5});
  model.norm_kind = NormKind::kLayer;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.lm_head_bias = config.boolean_or("lm_head_bias", false);
  read_windows(config, {.default_window = 0, .in_all_layers = true}, model);
  read_rope(config, model, {.default_theta = 1e6});
  read_experts(config,
               {.num_experts = "num_local_experts",
                .default_num_experts = 16,
                .default_top_k = 2,
                .score = RouterScore::kSparseMixer},
               model);
  if (model.experts.route.top_k != 2) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: a sparse mixer chooses 2 experts, got {}",
                            config.path_of("num_experts_per_tok"), model.experts.route.top_k));
  }
  model.experts.route.mixer_width = read_positive(config, "router_jitter_noise", 0.01);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kPhimoeFields = join_fields(kDecoderFields,
                                           std::to_array<KnownField>({
                                               read_or_null("attention_bias"),
                                               read("lm_head_bias"),
                                               read_or_null("sliding_window"),
                                               read_or_null("layer_types"),
                                               read("num_local_experts"),
                                               read("num_experts_per_tok"),
                                               read("router_jitter_noise"),
                                               harmless("input_jitter_noise", kTrainsRouter),
                                               harmless("router_aux_loss_coef", kTrainsRouter),
                                               harmless("output_router_logits", kTrainsRouter),
                                           }));

constexpr auto kPhimoeNames =
    std::to_array<std::string_view>({"PhimoeForCausalLM", "PhiMoEForCausalLM"});
constexpr auto kPhimoeTypes = std::to_array<std::string_view>({"phimoe"});

constexpr bool has_phimoe_head_bias(const ModelConfig& config, int32_t /*layer*/) {
  return config.lm_head_bias;
}

constexpr auto kPhimoeTensors = join_tensors(kLlamaOuterTensors,
                                             kLlamaNormTensors,
                                             kLlamaNormBiasTensors,
                                             kLlamaAttentionTensors,
                                             kLlamaQkvBiasTensors,
                                             kLlamaOBiasTensors,
                                             kMixtralExpertTensors,
                                             std::to_array<TensorSpec>({
                                                 {Role::kLmHeadBias, "lm_head.bias", Dim::kOne,
                                                  Dim::kVocab, Split::kNone, has_phimoe_head_bias},
                                             }));

}  // namespace

extern const Architecture kPhimoe;
constexpr Architecture kPhimoe = {
    .names = kPhimoeNames,
    .model_types = kPhimoeTypes,
    .prefix = "model.",
    .read_config = read_phimoe,
    .fields = kPhimoeFields,
    .tensors = kPhimoeTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
