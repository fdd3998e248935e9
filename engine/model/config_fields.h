// What the readers of the model families share: the sizes and traits that most config.json files
// spell alike. A family gives the names and the defaults that differ.
//
// Source for names and defaults: the family's configuration_*.py in `transformers`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/model/model_config.h"

namespace tgi {

// Names of the fields, and what an absent one means: Llama's, where a family does not say
// otherwise.
struct DecoderFields {
  std::string_view hidden_size = "hidden_size";
  std::string_view num_layers = "num_hidden_layers";
  std::string_view num_heads = "num_attention_heads";     // empty: no layer has attention
  std::string_view num_kv_heads = "num_key_value_heads";  // empty: as many as heads, always
  std::string_view head_dim = "head_dim";                 // empty: hidden_size / num_heads, always
  std::string_view intermediate_size = "intermediate_size";
  std::string_view max_positions = "max_position_embeddings";  // empty: the default, always
  std::string_view norm_eps = "rms_norm_eps";                  // empty: the default, always
  std::string_view activation = "hidden_act";                  // empty: the default, always

  int64_t default_vocab_size = 32000;
  int64_t default_hidden_size = 4096;
  int64_t default_num_layers = 32;
  int64_t default_num_heads = 32;
  int64_t default_num_kv_heads = 0;      // 0: num_heads, which null means in every family
  int64_t default_head_dim = 0;          // 0: hidden_size / num_heads
  int64_t default_intermediate = 11008;  // 0: four times hidden_size; -1: no layer has an MLP
  int64_t default_max_positions = 2048;
  double default_norm_eps = 1e-6;
  std::string_view default_activation = "silu";
  bool takes_xielu = false;  // the family's layers have its numbers
  bool default_tied = false;
  int32_t default_bos = 1;  // token ids; -1: none
  int32_t default_eos = 2;
};

// Where the config says which layers attend to a sliding window only.
struct WindowFields {
  // Tokens, when there is no sliding_window; null is none. 0: none too.
  int64_t default_window = 4096;
  // A layer has a window only if use_sliding_window says so, and without layer_types only from
  // max_window_layers on. Else all layers have one, but for those that layer_types makes full.
  bool by_switch = false;
  int64_t default_first_layer = 28;
  std::string_view first_layer_name = "max_window_layers";  // empty: from the first layer on
  // Without layer_types, layer i has no window where i + 1 is a multiple of it; 0: by no pattern.
  int64_t default_pattern = 0;
  std::string_view pattern_name{};  // of its field; empty: there is none
  bool null_is_no_window = true;    // else a pattern's layers need one
  // sliding_window alone says it, for all layers: a layer_types that says otherwise is refused.
  bool in_all_layers = false;
};

// Whether the layer is the last of a run of `pattern`.
constexpr bool ends_pattern(int64_t layer, int64_t pattern) {
  return (layer + 1) % pattern == 0;
}

// Everything but rope and what only some families have. Throws kInvalidArgument for sizes that are
// not positive, absurd, or don't fit each other.
ModelConfig read_decoder_config(const JsonReader& config, const DecoderFields& fields);

// The names in the list `key`, one for each layer. Throws kInvalidArgument for another number.
std::vector<std::string> read_layer_names(const JsonReader& config,
                                          std::string_view key,
                                          const ModelConfig& model);

// The list `key`, whose entries are for the caller to check. Throws kInvalidArgument where it is no
// list, or has another length. REQUIRES: the config has it.
const Json& read_layer_numbers(const JsonReader& config,
                               std::string_view key,
                               const ModelConfig& model);

// Writes a list `names` of the list `numbers` of 0 and 1, where the config has no list of names.
// Throws kInvalidArgument for other numbers.
void name_layers(const JsonReader& config,
                 std::string_view numbers,
                 std::string_view names,
                 const char* of_zero,
                 const char* of_one,
                 Json& out);

// Sliding windows: sliding_window, layer_types, and for families with a switch use_sliding_window
// and max_window_layers. REQUIRES: num_layers is set.
void read_windows(const JsonReader& config, const WindowFields& fields, ModelConfig& model);

// For a family that has no windows: refuses fields that ask for one. REQUIRES: num_layers and
// max_positions are set.
void refuse_windows(const JsonReader& config, const ModelConfig& model);

// A number, such as a multiplier or a cap. Throws kInvalidArgument where it is not finite, or not
// above 0.
float read_positive(const JsonReader& config, std::string_view key, double fallback);
// The same, where null or no field says none.
std::optional<float> read_optional_positive(const JsonReader& config,
                                            std::string_view key,
                                            std::optional<double> fallback);

// The text model's config of a multimodal one: text_config, with the fields that stand beside it;
// `fallback` where there is none, whose model_type is taken where text_config names none, and with
// fills_gaps each field that it does not have.
Json read_text_config(const JsonReader& config, const Json& fallback, bool fills_gaps = false);

// A list of one number per layer, 0 for false and 1 for true; empty when there is none. Throws
// kInvalidArgument where it has another length or other entries. REQUIRES: num_layers is set.
std::vector<bool> read_layer_switches(const JsonReader& config,
                                      std::string_view key,
                                      const ModelConfig& model);

// Throws kUnsupported listing the known names.
Activation parse_activation(std::string_view name,
                            const std::string& field,
                            bool takes_xielu = false);

// A size between 1 and `limit`.
int32_t read_size(const JsonReader& config, std::string_view key, int64_t fallback, int64_t limit);
int32_t check_size(const JsonReader& config, std::string_view key, int64_t value, int64_t limit);

// A number or a list of them; negative ones mean "none".
std::vector<int32_t> read_token_ids(const JsonReader& config, std::string_view key);

// Bounds of what a model can be. With that on q the bytes of its weights, of its KV cache and of
// its activations fit 64 bits; what is over kMaxParameters is refused all the same.
inline constexpr int64_t kMaxVocabSize = 1 << 24;
inline constexpr int64_t kMaxHiddenSize = 1 << 20;
inline constexpr int64_t kMaxIntermediateSize = 1 << 22;
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxHeads = 1 << 16;
inline constexpr int64_t kMaxHeadDim = 4096;
inline constexpr int64_t kMaxQuerySize = 1 << 22;  // num_heads * head_dim
inline constexpr int64_t kMaxPositions = 1 << 30;
inline constexpr double kMaxParameters = 1e14;
inline constexpr double kMaxCachedNumbers = 1e16;  // keys and values of one sequence

}  // namespace tgi
