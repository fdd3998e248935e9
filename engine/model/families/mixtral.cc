// Mixtral: Mistral's block with experts in place of the MLP.
// Source: models/mixtral in `transformers`; https://arxiv.org/abs/2401.04088.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_mixtral(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5});
  read_windows(config, {.default_window = 0}, model);
  read_rope(config, model, {.default_theta = 1e6});
  read_experts(config, kMixtralExperts, model);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kMixtralFields =
    join_fields(kDecoderFields,
                kMixtralExpertFields,
                std::to_array<KnownField>({
                    read_or_null("sliding_window"),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                }));

constexpr auto kMixtralNames = std::to_array<std::string_view>({"MixtralForCausalLM"});
constexpr auto kMixtralTypes = std::to_array<std::string_view>({"mixtral"});

constexpr auto kMixtralTensors = join_tensors(
    kLlamaOuterTensors, kLlamaNormTensors, kLlamaAttentionTensors, kMixtralExpertTensors);

}  // namespace

extern const Architecture kMixtral;
constexpr Architecture kMixtral = {
    .names = kMixtralNames,
    .model_types = kMixtralTypes,
    .prefix = "model.",
    .read_config = read_mixtral,
    .fields = kMixtralFields,
    .tensors = kMixtralTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
