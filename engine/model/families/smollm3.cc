// SmolLM 3: Llama's block, in which every fourth layer does not rotate; those may have windows.
// Source: models/smollm3 in `transformers`.
#include <array>
#include <string_view>
#include <vector>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kSmollm3Decoder = {
    .default_vocab_size = 128256,
    .default_hidden_size = 2048,
    .default_num_layers = 36,
    .default_num_heads = 16,
    .default_num_kv_heads = 4,
    .default_max_positions = 32768,
    .default_tied = true,
    .default_bos = 128000,
    .default_eos = 128001,
};

// Whether a layer rotates.
std::vector<bool> read_rotations(const JsonReader& config, const ModelConfig& model) {
  std::vector<bool> out = read_layer_switches(config, "no_rope_layers", model);
  if (!out.empty()) return out;
  const int64_t interval = read_size(config, "no_rope_layer_interval", 4, kMaxLayers);
  for (int64_t i = 0; i < model.num_layers; ++i) out.push_back(!ends_pattern(i, interval));
  return out;
}

ModelConfig read_smollm3(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, kSmollm3Decoder);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_windows(config, {.default_window = 0, .by_switch = true, .first_layer_name = ""}, model);
  read_rope(config, model, {.default_theta = 2e6});
  const std::vector<bool> rotates = read_rotations(config, model);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (!rotates[i]) model.layers[i].rope = kNoRope;
    if (rotates[i] && !config.has("layer_types")) model.layers[i].sliding_window = 0;
  }
  return model;
}

constexpr auto kSmollm3Fields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("mlp_bias"),
                    read_or_null("no_rope_layers"),
                    read("no_rope_layer_interval"),
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    harmless("max_window_layers", "layers that do not rotate have the windows"),
                }));

constexpr auto kSmollm3Names = std::to_array<std::string_view>({"SmolLM3ForCausalLM"});
constexpr auto kSmollm3Types = std::to_array<std::string_view>({"smollm3"});

constexpr auto kSmollm3Tensors = join_tensors(kLlamaOuterTensors,
                                              kLlamaNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors,
                                              kLlamaMlpBiasTensors);

}  // namespace

extern const Architecture kSmolLm3;
constexpr Architecture kSmolLm3 = {
    .names = kSmollm3Names,
    .model_types = kSmollm3Types,
    .prefix = "model.",
    .read_config = read_smollm3,
    .fields = kSmollm3Fields,
    .tensors = kSmollm3Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
