// CWM: Llama's block with sliding windows in three of four layers.
// Source: models/cwm in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr DecoderFields kCwmDecoder = {
    .default_vocab_size = 128256,
    .default_hidden_size = 6144,
    .default_num_layers = 64,
    .default_num_heads = 48,
    .default_num_kv_heads = 8,
    .default_head_dim = 128,
    .default_intermediate = 21504,
    .default_max_positions = 131072,
    .default_norm_eps = 1e-5,
    .default_bos = 128000,
};

bool is_there(const Json& config, const char* key) {
  const auto found = config.find(key);
  return found != config.end() && !found->is_null();
}

// A config without them is taken to have these.
Json with_defaults(const Json& config) {
  Json out = config;
  if (!is_there(out, "eos_token_id")) out["eos_token_id"] = {128001, 128008, 128009};
  if (is_there(out, "rope_parameters") || is_there(out, "rope_scaling")) return out;
  out["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", 16.0},
                         {"high_freq_factor", 4.0},
                         {"low_freq_factor", 1.0},
                         {"original_max_position_embeddings", 8192}};
  return out;
}

// Without layer_types every fourth layer is full, from the first one on.
void read_windows_of_three(const JsonReader& config, ModelConfig& model) {
  read_windows(config, {.default_window = 8192}, model);
  if (config.has("layer_types")) return;
  for (size_t i = 0; i < model.layers.size(); i += 4) model.layers[i].sliding_window = 0;
}

ModelConfig read_cwm(const JsonReader& given) {
  const Json json = with_defaults(given.json());
  const JsonReader config(json, "");
  ModelConfig model = read_decoder_config(config, kCwmDecoder);
  read_windows_of_three(config, model);
  read_rope(config, model, {.default_theta = 1e6});
  return model;
}

constexpr auto kCwmFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    harmless_if("attention_bias", "[false]", "there are no biases"),
                    harmless_if("mlp_bias", "[false]", "there are no biases"),
                }));

constexpr auto kCwmNames = std::to_array<std::string_view>({"CwmForCausalLM"});
constexpr auto kCwmTypes = std::to_array<std::string_view>({"cwm"});

constexpr auto kCwmTensors =
    join_tensors(kLlamaOuterTensors, kLlamaNormTensors, kLlamaAttentionTensors, kLlamaMlpTensors);

}  // namespace

extern const Architecture kCwm;
constexpr Architecture kCwm = {
    .names = kCwmNames,
    .model_types = kCwmTypes,
    .prefix = "model.",
    .read_config = read_cwm,
    .fields = kCwmFields,
    .tensors = kCwmTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
