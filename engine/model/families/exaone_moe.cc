// EXAONE with experts: EXAONE 4's attention behind a norm and, after the first layers, DeepSeek's
// experts. Models with windows rotate only where there is one.
// Source: models/exaone_moe in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kExaoneMoeDecoder = {
    .default_vocab_size = 102400,
    .default_num_kv_heads = 32,
    .default_intermediate = 16384,
    .default_norm_eps = 1e-5,
    .default_eos = 53,
};

[[noreturn]] void refuse_layer_types(const JsonReader& config, const std::string& message) {
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: {}", config.path_of("mlp_layer_types"), message));
}

// A list of "dense" and "sparse" goes before the count of dense ones.
void read_sparse_layers(const JsonReader& config, ModelConfig& model) {
  if (!config.has("mlp_layer_types")) return read_first_sparse_layer(config, 1, model);
  const std::vector<std::string> types = config.strings_or_empty("mlp_layer_types");
  if (types.size() != model.layers.size()) {
    refuse_layer_types(config, fmt::format("expected {} entries, one per layer, got {}",
                                           model.layers.size(), types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "dense" && types[i] != "sparse") {
      refuse_layer_types(config, fmt::format("expected dense or sparse, got \"{}\"", types[i]));
    }
    if (types[i] == "sparse") model.layers[i].mlp = MlpKind::kExperts;
  }
}

ModelConfig read_exaone_moe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kExaoneMoeDecoder);
  // The pattern may be spelt in letters where layer_types says the same.
  read_windows(config, {.default_pattern = 4, .pattern_name = "sliding_window_pattern"}, model);
  read_rope(config, model);
  const bool has_no_window =
      config.json().contains("sliding_window") && !config.has("sliding_window");
  for (LayerPlan& layer : model.layers) {
    if (!has_no_window && layer.sliding_window == 0) layer.rope = kNoRope;
  }
  read_deepseek_experts(
      config, {.default_num_experts = 64, .default_top_k = 8, .default_intermediate = 1024}, model);
  model.experts.route.scale = static_cast<float>(config.number_or("routed_scaling_factor", 2.5));
  read_sparse_layers(config, model);
  return model;
}

constexpr auto kExaoneMoeFields =
    join_fields(kDecoderFields,
                kDeepSeekExpertFields,
                std::to_array<KnownField>({
                    read_or_null("sliding_window"),
                    read_or_null("sliding_window_pattern"),
                    read_or_null("layer_types"),
                    read_or_null("mlp_layer_types"),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                }));

constexpr auto kExaoneMoeAliases = std::to_array<FieldAlias>({
    {"num_experts", "n_routed_experts"},
    {"num_shared_experts", "n_shared_experts"},
});

constexpr auto kExaoneMoeNames =
    std::to_array<std::string_view>({"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"});
constexpr auto kExaoneMoeTypes = std::to_array<std::string_view>({"exaone_moe"});

constexpr auto kExaoneMoeTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kQkNormTensors,
                 kLlamaMlpTensors,
                 kExpertTensors,
                 kSharedExpertsTensors,
                 std::to_array<TensorSpec>({
                     {Role::kChoiceBias, "model.layers.{layer}.mlp.e_score_correction_bias",
                      Dim::kOne, Dim::kExperts, Split::kNone, has_choice_bias},
                 }));

// What predicts tokens further ahead.
constexpr auto kExaoneMoeIgnored =
    std::to_array<std::string_view>({".rotary_emb.inv_freq", "mtp.*"});

}  // namespace

extern const Architecture kExaoneMoe;
constexpr Architecture kExaoneMoe = {
    .names = kExaoneMoeNames,
    .model_types = kExaoneMoeTypes,
    .prefix = "model.",
    .read_config = read_exaone_moe,
    .fields = kExaoneMoeFields,
    .aliases = kExaoneMoeAliases,
    .tensors = kExaoneMoeTensors,
    .ignored = kExaoneMoeIgnored,
};

}  // namespace tgi
