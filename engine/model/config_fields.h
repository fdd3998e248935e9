// What the readers of the model families share: the sizes and traits that most config.json files
// spell alike. A family gives the names and the defaults that differ.
//
// Source for names and defaults: the family's configuration_*.py in `transformers`.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "engine/model/model_config.h"

namespace tgi {

// Names of the fields, and what an absent one means.
struct DecoderFields {
  std::string_view hidden_size = "hidden_size";
  std::string_view num_layers = "num_hidden_layers";
  std::string_view num_heads = "num_attention_heads";
  std::string_view num_kv_heads = "num_key_value_heads";  // absent: num_heads
  std::string_view head_dim = "head_dim";                 // absent: see default_head_dim
  std::string_view intermediate_size = "intermediate_size";
  std::string_view max_positions = "max_position_embeddings";
  std::string_view norm_eps = "rms_norm_eps";
  std::string_view activation = "hidden_act";

  int64_t default_head_dim = 0;               // 0: hidden_size / num_heads
  int64_t default_intermediate_multiple = 0;  // of hidden_size; 0: the field is required
  int64_t default_max_positions = 2048;
  double default_norm_eps = 1e-6;
  std::string_view default_activation = "silu";
  bool default_tied = false;
};

// Everything but rope and what only some families have. Throws kInvalidArgument for sizes that are
// missing, not positive, absurd, or don't fit each other.
ModelConfig read_decoder_config(const JsonReader& config, const DecoderFields& fields);

// Sliding windows as Qwen says them: use_sliding_window, sliding_window, max_window_layers,
// layer_types.
void read_window_layers(const JsonReader& config, ModelConfig& model);

// Throws kUnsupported listing the known names.
Activation parse_activation(std::string_view name, const std::string& field);

// A size between 1 and `limit`.
int32_t read_size(const JsonReader& config, std::string_view key, int64_t limit);
int32_t check_size(const JsonReader& config, std::string_view key, int64_t value, int64_t limit);

// A number or a list of them; negative ones mean "none".
std::vector<int32_t> read_token_ids(const JsonReader& config, std::string_view key);

// Bounds of what a model can be: their products fit 64 bits with room to spare.
inline constexpr int64_t kMaxVocabSize = 1 << 24;
inline constexpr int64_t kMaxHiddenSize = 1 << 20;
inline constexpr int64_t kMaxIntermediateSize = 1 << 22;
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeads = 1 << 16;
inline constexpr int64_t kMaxHeadDim = 4096;
inline constexpr int64_t kMaxPositions = 1 << 30;

}  // namespace tgi
