#include "engine/model/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

struct ActivationName {
  std::string_view name;
  Activation kind;
};

// gelu_new, gelu_fast, gelu_accurate and gelu_pytorch_tanh are one formula.
constexpr std::array<ActivationName, 12> kActivations = {{
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"relu2", Activation::kReluSquared},
    {"xielu", Activation::kXielu},
}};

[[noreturn]] void fail(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

DType read_dtype(const JsonReader& config) {
  const std::string_view key = config.has("dtype") ? "dtype" : "torch_dtype";
  // As in transformers, a config that names no type is of float32.
  const std::string name = config.string_or(key, "float32");
  if (const auto dtype = dtype_from_name(name)) return *dtype;
  throw Error(Code::kUnsupported, fmt::format("{}: '{}' is not supported; known are float32, "
                                              "float16, bfloat16",
                                              config.path_of(key), name));
}

// Absent, null and a number are three things: null is as many as there are heads.
int64_t num_kv_heads(const JsonReader& config, const DecoderFields& fields, int64_t num_heads) {
  if (fields.num_kv_heads.empty()) return num_heads;
  const bool is_null =
      config.json().contains(fields.num_kv_heads) && !config.has(fields.num_kv_heads);
  const bool as_heads = is_null || fields.default_num_kv_heads == 0;
  return config.integer_or(fields.num_kv_heads, as_heads ? num_heads : fields.default_num_kv_heads);
}

// " (the default of this architecture)" after a value that the file does not say.
std::string said(const JsonReader& config, std::string_view key) {
  return config.has(key) ? "" : " (the default, as the field is missing)";
}

int64_t head_dim(const JsonReader& config, const DecoderFields& fields, const ModelConfig& model) {
  const bool has_field = !fields.head_dim.empty();
  if (has_field && (config.has(fields.head_dim) || fields.default_head_dim > 0)) {
    return config.integer_or(fields.head_dim, fields.default_head_dim);
  }
  if (model.hidden_size % model.num_heads != 0) {
    fail(fmt::format("{}: {}{} is not a multiple of {} = {}{}{}",
                     config.path_of(fields.hidden_size), model.hidden_size,
                     said(config, fields.hidden_size), fields.num_heads, model.num_heads,
                     said(config, fields.num_heads),
                     has_field ? fmt::format(", and there is no {}", fields.head_dim) : ""));
  }
  return model.hidden_size / model.num_heads;
}

void read_heads(const JsonReader& config, const DecoderFields& fields, ModelConfig& model) {
  model.num_heads = read_size(config, fields.num_heads, fields.default_num_heads, kMaxHeads);
  const std::string_view kv_name =
      fields.num_kv_heads.empty() ? fields.num_heads : fields.num_kv_heads;
  model.num_kv_heads =
      check_size(config, kv_name, num_kv_heads(config, fields, model.num_heads), kMaxHeads);
  if (model.num_heads % model.num_kv_heads != 0) {
    fail(fmt::format("{}: {} heads can't be shared among {} KV heads{} evenly",
                     config.path_of(kv_name), model.num_heads, model.num_kv_heads,
                     said(config, kv_name)));
  }
  const std::string_view dim_name = fields.head_dim.empty() ? fields.hidden_size : fields.head_dim;
  model.head_dim = check_size(config, dim_name, head_dim(config, fields, model), kMaxHeadDim);
  if (int64_t{model.num_heads} * model.head_dim > kMaxQuerySize) {
    fail(fmt::format("{}: {} heads of {} are {}, expected at most {}",
                     config.path_of(fields.num_heads), model.num_heads, model.head_dim,
                     int64_t{model.num_heads} * model.head_dim, kMaxQuerySize));
  }
  model.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.head_dim)));
}

// Those of the file, or the default of the family where the vocabulary has it.
std::vector<int32_t> token_ids_or(const JsonReader& config,
                                  std::string_view key,
                                  int32_t fallback,
                                  int32_t vocab_size) {
  if (config.json().contains(key)) return read_token_ids(config, key);
  if (fallback < 0 || fallback >= vocab_size) return {};
  return {fallback};
}

}  // namespace

int32_t check_size(const JsonReader& config, std::string_view key, int64_t value, int64_t limit) {
  if (value < 1 || value > limit) {
    fail(fmt::format("{}: expected 1 to {}, got {}", config.path_of(key), limit, value));
  }
  return static_cast<int32_t>(value);
}

int32_t read_size(const JsonReader& config, std::string_view key, int64_t fallback, int64_t limit) {
  return check_size(config, key, config.integer_or(key, fallback), limit);
}

std::optional<float> read_optional_positive(const JsonReader& config,
                                            std::string_view key,
                                            std::optional<double> fallback) {
  const std::optional<double> value =
      config.json().contains(key) ? config.optional_number(key) : fallback;
  if (!value) return std::nullopt;
  const auto number = static_cast<float>(*value);
  if (!(number > 0.0F) || !std::isfinite(number)) {
    fail(fmt::format("{}: expected a number above 0, got {}", config.path_of(key), *value));
  }
  return number;
}

float read_positive(const JsonReader& config, std::string_view key, double fallback) {
  return *read_optional_positive(config, key, config.number_or(key, fallback));
}

std::vector<bool> read_layer_switches(const JsonReader& config,
                                      std::string_view key,
                                      const ModelConfig& model) {
  std::vector<bool> out;
  if (!config.has(key)) return out;
  const Json& list = config.json().at(std::string(key));
  if (!list.is_array()) {
    fail(fmt::format("{}: expected a list of 0 and 1, one per layer, got {}", config.path_of(key),
                     list.dump()));
  }
  if (list.size() != static_cast<size_t>(model.num_layers)) {
    fail(fmt::format("{}: expected {} entries, one per layer, got {}", config.path_of(key),
                     model.num_layers, list.size()));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] != 0 && list[i] != 1 && !list[i].is_boolean()) {
      fail(fmt::format("{}[{}]: expected 0 or 1, got {}", config.path_of(key), i, list[i].dump()));
    }
    out.push_back(list[i] == 1 || list[i] == true);
  }
  return out;
}

Json read_text_config(const JsonReader& config, const Json& fallback, bool fills_gaps) {
  Json text = config.has("text_config") ? config.object("text_config").json() : fallback;
  for (const auto& [name, value] : fallback.items()) {
    if (!text.contains(name) && (fills_gaps || name == "model_type")) text[name] = value;
  }
  for (const char* key :
       {"dtype", "torch_dtype", "bos_token_id", "eos_token_id", "tie_word_embeddings"}) {
    if (config.has(key)) text[key] = config.json().at(key);
  }
  return text;
}

Activation parse_activation(std::string_view name, const std::string& field, bool takes_xielu) {
  std::string known;
  for (const ActivationName& row : kActivations) {
    if (row.kind == Activation::kXielu && !takes_xielu) continue;
    if (row.name == name) return row.kind;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are {}", field, name, known));
}

std::vector<int32_t> read_token_ids(const JsonReader& config, std::string_view key) {
  std::vector<int32_t> ids;
  if (!config.has(key)) return ids;
  const Json& value = config.json().at(std::string(key));
  const Json list = value.is_array() ? value : Json::array({value});
  for (const Json& item : list) {
    if (!item.is_number_integer()) {
      fail(fmt::format("{}: expected a token id or a list of them, got {}", config.path_of(key),
                       value.dump()));
    }
    const auto id = item.get<int64_t>();
    if (id > std::numeric_limits<int32_t>::max()) {
      fail(fmt::format("{}: {} is not a token id", config.path_of(key), id));
    }
    if (id >= 0) ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

ModelConfig read_decoder_config(const JsonReader& config, const DecoderFields& fields) {
  ModelConfig model;
  model.vocab_size = read_size(config, "vocab_size", fields.default_vocab_size, kMaxVocabSize);
  model.hidden_size =
      read_size(config, fields.hidden_size, fields.default_hidden_size, kMaxHiddenSize);
  model.num_layers = read_size(config, fields.num_layers, fields.default_num_layers, kMaxLayers);
  model.layers.resize(static_cast<size_t>(model.num_layers));
  if (!fields.num_heads.empty()) read_heads(config, fields, model);

  const int64_t four_times = int64_t{4} * model.hidden_size;
  if (fields.default_intermediate >= 0) {
    model.intermediate_size =
        read_size(config, fields.intermediate_size,
                  fields.default_intermediate > 0 ? fields.default_intermediate : four_times,
                  kMaxIntermediateSize);
  }
  model.max_positions =
      read_size(config, fields.max_positions, fields.default_max_positions, kMaxPositions);

  const double norm_eps = fields.norm_eps.empty()
                              ? fields.default_norm_eps
                              : config.number_or(fields.norm_eps, fields.default_norm_eps);
  if (!(norm_eps >= 0.0 && norm_eps < 1.0)) {
    fail(fmt::format("{}: expected 0 to 1, got {}", config.path_of(fields.norm_eps), norm_eps));
  }
  model.norm_eps = static_cast<float>(norm_eps);
  model.activation =
      parse_activation(config.string_or(fields.activation, std::string(fields.default_activation)),
                       config.path_of(fields.activation), fields.takes_xielu);
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", fields.default_tied);
  model.checkpoint_dtype = read_dtype(config);
  model.eos_token_ids = token_ids_or(config, "eos_token_id", fields.default_eos, model.vocab_size);
  const std::vector<int32_t> bos =
      token_ids_or(config, "bos_token_id", fields.default_bos, model.vocab_size);
  if (!bos.empty()) model.bos_token_id = bos.front();
  return model;
}

namespace {

struct LayerType {
  std::string_view name;
  bool has_window;
};

// The last is how the first was called once.
constexpr std::array<LayerType, 3> kLayerTypes = {{
    {"full_attention", false},
    {"sliding_attention", true},
    {"attention", false},
}};

bool has_window(const std::string& type, const std::string& field) {
  for (const LayerType& row : kLayerTypes) {
    if (row.name == type) return row.has_window;
  }
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are full_attention, sliding_attention",
                          field, type));
}

// layer_types, one entry per layer; empty when there is no such field.
std::vector<bool> read_layer_types(const JsonReader& config, const ModelConfig& model) {
  std::vector<bool> out;
  if (!config.has("layer_types")) return out;
  const std::vector<std::string> types = read_layer_names(config, "layer_types", model);
  for (size_t i = 0; i < types.size(); ++i) {
    out.push_back(has_window(types[i], fmt::format("{}[{}]", config.path_of("layer_types"), i)));
  }
  return out;
}

bool has_any(const std::vector<bool>& layers) {
  return std::ranges::find(layers, true) != layers.end();
}

// Empty where the family has no pattern.
std::vector<bool> layers_by_pattern(const JsonReader& config,
                                    const WindowFields& fields,
                                    const ModelConfig& model) {
  std::vector<bool> out;
  if (fields.default_pattern == 0) return out;
  int64_t pattern = fields.default_pattern;
  if (!fields.pattern_name.empty()) {
    pattern = read_size(config, fields.pattern_name, pattern, kMaxLayers);
  }
  for (int64_t i = 0; i < model.num_layers; ++i) out.push_back(!ends_pattern(i, pattern));
  return out;
}

// The class passes over such a list; who wrote it means what it says.
void refuse_full_layers(const JsonReader& config, const std::vector<bool>& layers, int64_t window) {
  const auto full = std::ranges::find(layers, false);
  if (full == layers.end()) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}[{}]: expected sliding_attention, as sliding_window = {} is for all "
                          "layers of this architecture, got full_attention; take one of the two "
                          "out of the file",
                          config.path_of("layer_types"), full - layers.begin(), window));
}

// 0: none.
int64_t window_size(const JsonReader& config, const WindowFields& fields) {
  if (fields.by_switch && !config.boolean_or("use_sliding_window", false)) return 0;
  if (!config.has("sliding_window")) {
    return config.json().contains("sliding_window") ? 0 : fields.default_window;
  }
  return read_size(config, "sliding_window", fields.default_window, kMaxPositions);
}

}  // namespace

const Json& read_layer_numbers(const JsonReader& config,
                               std::string_view key,
                               const ModelConfig& model) {
  const Json& list = config.json().at(std::string(key));
  if (!list.is_array() || list.size() != model.layers.size()) {
    fail(fmt::format("{}: expected a list of {} numbers, one per layer, got {}",
                     config.path_of(key), model.num_layers,
                     list.is_array() ? fmt::format("{}", list.size()) : list.dump()));
  }
  return list;
}

std::vector<std::string> read_layer_names(const JsonReader& config,
                                          std::string_view key,
                                          const ModelConfig& model) {
  std::vector<std::string> names = config.strings_or_empty(key);
  if (names.size() == model.layers.size()) return names;
  fail(fmt::format("{}: expected {} entries, one per layer, got {}", config.path_of(key),
                   model.num_layers, names.size()));
}

void name_layers(const JsonReader& config,
                 std::string_view numbers,
                 std::string_view names,
                 const char* of_zero,
                 const char* of_one,
                 Json& out) {
  if (config.has(names) || !config.has(numbers)) return;
  const Json& given = config.json().at(std::string(numbers));
  const bool is_list = given.is_array() && std::ranges::all_of(given, [](const Json& number) {
                         return number == 0 || number == 1;
                       });
  if (!is_list) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected a list of 0 and 1, got {}",
                                                    config.path_of(numbers), given.dump()));
  }
  Json list = Json::array();
  for (const Json& number : given) list.push_back(number == 1 ? of_one : of_zero);
  out[std::string(names)] = std::move(list);
}

void read_windows(const JsonReader& config, const WindowFields& fields, ModelConfig& model) {
  std::vector<bool> layers = read_layer_types(config, model);
  const int64_t window = window_size(config, fields);
  if (layers.empty() && (window != 0 || !fields.null_is_no_window)) {
    layers = layers_by_pattern(config, fields, model);
  }
  if (window == 0) {
    if (!has_any(layers)) return;
    fail(fmt::format("{}: has layers of sliding_attention{}, but {}", config.path_of("layer_types"),
                     said(config, "layer_types"),
                     fields.by_switch && !config.boolean_or("use_sliding_window", false)
                         ? "use_sliding_window is not set"
                         : "sliding_window is null"));
  }
  if (fields.in_all_layers && window < model.max_positions)
    refuse_full_layers(config, layers, window);
  if (layers.empty() && fields.by_switch && !fields.first_layer_name.empty()) {
    const int64_t first = config.integer_or(fields.first_layer_name, fields.default_first_layer);
    for (int64_t i = 0; i < model.num_layers; ++i) layers.push_back(i >= first);
  }
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (layers.empty() || layers[i]) model.layers[i].sliding_window = static_cast<int32_t>(window);
  }
}

void refuse_windows(const JsonReader& config, const ModelConfig& model) {
  const auto refuse = [&](std::string_view key, std::string_view asked) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: {}, but this architecture has no sliding windows; expected none",
                            config.path_of(key), asked));
  };
  if (has_any(read_layer_types(config, model))) refuse("layer_types", "asks for sliding_attention");
  if (config.boolean_or("use_sliding_window", false)) refuse("use_sliding_window", "true");
  if (config.has("use_sliding_window")) return;
  // A window as long as the context hides nothing.
  const int64_t window = config.integer_or("sliding_window", model.max_positions);
  if (window < model.max_positions) {
    refuse("sliding_window", fmt::format("asks for {} tokens", window));
  }
}

}  // namespace tgi
