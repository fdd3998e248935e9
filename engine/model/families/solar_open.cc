// Solar Open: Llama's attention, and in every layer GLM-4.5's experts beside those that all tokens
// go to. Source: models/solar_open in `transformers`.
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

ModelConfig read_solar_open(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 196608,
                                                   .default_num_layers = 48,
                                                   .default_num_heads = 64,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = -1,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  read_rope(config, model, {.default_theta = 1e6, .takes_partial = true});
  read_deepseek_experts(
      config, {.default_num_experts = 128, .default_top_k = 8, .default_intermediate = 1280},
      model);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kSolarOpenFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    harmless("intermediate_size", "all layers have experts"),
                    harmless_if("first_k_dense_replace", "[0]", "all layers have experts"),
                    harmless_if("use_qk_norm", "[false]", "heads of q and k are not normed"),
                    harmless("num_nextn_predict_layers", "tokens are predicted one by one"),
                }),
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kSolarOpenNames = std::to_array<std::string_view>({"SolarOpenForCausalLM"});
constexpr auto kSolarOpenTypes = std::to_array<std::string_view>({"solar_open"});

constexpr auto kSolarOpenTensors = join_tensors(kLlamaOuterTensors,
                                                kLlamaNormTensors,
                                                kLlamaAttentionTensors,
                                                kLlamaQkvBiasTensors,
                                                kExpertTensors,
                                                kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kSolarOpen;
constexpr Architecture kSolarOpen = {
    .names = kSolarOpenNames,
    .model_types = kSolarOpenTypes,
    .prefix = "model.",
    .read_config = read_solar_open,
    .fields = kSolarOpenFields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kSolarOpenTensors,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
};

}  // namespace tgi
