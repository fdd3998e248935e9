#include "engine/model/config_fields.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace tgi {
namespace {

struct ActivationName {
  std::string_view name;
  Activation kind;
};

// gelu_new, gelu_fast, gelu_accurate and gelu_pytorch_tanh are one formula.
constexpr std::array<ActivationName, 11> kActivations = {{
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

void read_heads(const JsonReader& config, const DecoderFields& fields, ModelConfig& model) {
  model.num_heads = read_size(config, fields.num_heads, kMaxHeads);
  const int64_t num_kv_heads = config.integer_or(fields.num_kv_heads, model.num_heads);
  model.num_kv_heads = check_size(config, fields.num_kv_heads, num_kv_heads, kMaxHeads);
  if (model.num_heads % model.num_kv_heads != 0) {
    fail(fmt::format("{}: {} heads can't be shared among {} KV heads evenly",
                     config.path_of(fields.num_kv_heads), model.num_heads, model.num_kv_heads));
  }
  if (config.has(fields.head_dim) || fields.default_head_dim > 0) {
    const int64_t head_dim = config.integer_or(fields.head_dim, fields.default_head_dim);
    model.head_dim = check_size(config, fields.head_dim, head_dim, kMaxHeadDim);
  } else {
    if (model.hidden_size % model.num_heads != 0) {
      fail(fmt::format("{}: {} is not a multiple of {} = {}, and there is no {}",
                       config.path_of(fields.hidden_size), model.hidden_size, fields.num_heads,
                       model.num_heads, fields.head_dim));
    }
    model.head_dim =
        check_size(config, fields.head_dim, model.hidden_size / model.num_heads, kMaxHeadDim);
  }
  model.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.head_dim)));
}

}  // namespace

int32_t check_size(const JsonReader& config, std::string_view key, int64_t value, int64_t limit) {
  if (value < 1 || value > limit) {
    fail(fmt::format("{}: expected 1 to {}, got {}", config.path_of(key), limit, value));
  }
  return static_cast<int32_t>(value);
}

int32_t read_size(const JsonReader& config, std::string_view key, int64_t limit) {
  return check_size(config, key, config.integer(key), limit);
}

Activation parse_activation(std::string_view name, const std::string& field) {
  std::string known;
  for (const ActivationName& row : kActivations) {
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
  model.vocab_size = read_size(config, "vocab_size", kMaxVocabSize);
  model.hidden_size = read_size(config, fields.hidden_size, kMaxHiddenSize);
  model.num_layers = read_size(config, fields.num_layers, kMaxLayers);
  read_heads(config, fields, model);

  const int64_t default_intermediate = fields.default_intermediate_multiple * model.hidden_size;
  model.intermediate_size = check_size(
      config, fields.intermediate_size,
      default_intermediate > 0 ? config.integer_or(fields.intermediate_size, default_intermediate)
                               : config.integer(fields.intermediate_size),
      kMaxIntermediateSize);
  model.max_positions = check_size(
      config, fields.max_positions,
      config.integer_or(fields.max_positions, fields.default_max_positions), kMaxPositions);

  const double norm_eps = config.number_or(fields.norm_eps, fields.default_norm_eps);
  if (!(norm_eps >= 0.0 && norm_eps < 1.0)) {
    fail(fmt::format("{}: expected 0 to 1, got {}", config.path_of(fields.norm_eps), norm_eps));
  }
  model.norm_eps = static_cast<float>(norm_eps);
  model.activation =
      parse_activation(config.string_or(fields.activation, std::string(fields.default_activation)),
                       config.path_of(fields.activation));
  model.tied_embeddings = config.boolean_or("tie_word_embeddings", fields.default_tied);
  model.checkpoint_dtype = read_dtype(config);
  model.eos_token_ids = read_token_ids(config, "eos_token_id");
  const std::vector<int32_t> bos = read_token_ids(config, "bos_token_id");
  if (!bos.empty()) model.bos_token_id = bos.front();
  return model;
}

namespace {

// By layer_types when given, else all from max_window_layers on.
std::vector<bool> windowed_layers(const JsonReader& config, const ModelConfig& model) {
  const auto num_layers = static_cast<size_t>(model.num_layers);
  std::vector<bool> out(num_layers, false);
  if (!config.has("layer_types")) {
    const int64_t first = config.integer_or("max_window_layers", 28);
    for (size_t i = 0; i < num_layers; ++i) out[i] = static_cast<int64_t>(i) >= first;
    return out;
  }
  const std::vector<std::string> types = config.strings_or_empty("layer_types");
  if (types.size() != num_layers) {
    fail(fmt::format("{}: expected {} entries, one per layer, got {}",
                     config.path_of("layer_types"), num_layers, types.size()));
  }
  for (size_t i = 0; i < num_layers; ++i) {
    if (types[i] != "sliding_attention" && types[i] != "full_attention") {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: '{}' is not supported; known are full_attention, "
                              "sliding_attention",
                              config.path_of("layer_types"), types[i]));
    }
    out[i] = types[i] == "sliding_attention";
  }
  return out;
}

}  // namespace

void read_window_layers(const JsonReader& config, ModelConfig& model) {
  if (!config.boolean_or("use_sliding_window", false)) {
    for (const std::string& type : config.strings_or_empty("layer_types")) {
      if (type == "full_attention") continue;
      fail(fmt::format("{}: has a layer of '{}', but use_sliding_window is not set",
                       config.path_of("layer_types"), type));
    }
    return;
  }
  // As in transformers: an explicit null means no window at all.
  if (config.json().contains("sliding_window") && !config.has("sliding_window")) return;
  const int64_t window = config.integer_or("sliding_window", 4096);
  model.sliding_window = check_size(config, "sliding_window", window, kMaxPositions);
  model.layer_uses_window = windowed_layers(config, model);
}

}  // namespace tgi
