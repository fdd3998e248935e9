#include "engine/model/state_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/config_fields.h"

namespace tgi {
namespace {

// Numbers of the state of one sequence in one layer.
constexpr int64_t kMaxStateNumbers = int64_t{1} << 30;

void set_mixer(ModelConfig& model, int64_t layer, bool has_attention) {
  LayerPlan& plan = model.layers[static_cast<size_t>(layer)];
  plan.has_attention = has_attention;
  plan.has_state = !has_attention;
}

[[noreturn]] void fail_field(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

int64_t expanded(const JsonReader& config,
                 std::string_view key,
                 double fallback,
                 const ModelConfig& model) {
  const double factor = key.empty() ? fallback : config.number_or(key, fallback);
  const double size = std::floor(factor * static_cast<double>(model.hidden_size));
  if (!(size >= 1.0 && size <= static_cast<double>(kMaxIntermediateSize))) {
    fail_field(fmt::format("{}: {} times the hidden size of {} is not between 1 and {}",
                           config.path_of(key), factor, model.hidden_size, kMaxIntermediateSize));
  }
  return static_cast<int64_t>(size);
}

void read_step_limit(const JsonReader& config, std::string_view key, StateConfig& state) {
  if (key.empty() || !config.has(key)) return;
  const Json& list = config.json().at(std::string(key));
  // JSON has no word for it; this is how transformers writes it.
  const auto is_infinite = [](const Json& value) {
    return value == "Infinity" || value == Json{{"__float__", "Infinity"}};
  };
  const bool are_numbers = list.is_array() && list.size() == 2 && list[0].is_number() &&
                           (list[1].is_number() || is_infinite(list[1]));
  if (!are_numbers) {
    fail_field(fmt::format("{}: expected the least and the most of a step, got {}",
                           config.path_of(key), list.dump()));
  }
  state.min_step = list[0].get<float>();
  if (list[1].is_number()) state.max_step = list[1].get<float>();
  if (!(state.min_step >= 0.0F) || !(state.min_step < state.max_step)) {
    fail_field(fmt::format("{}: expected two rising numbers from 0 on, got {}", config.path_of(key),
                           list.dump()));
  }
}

}  // namespace

void read_mixer_types(const JsonReader& config,
                      std::string_view key,
                      const MixerNames& names,
                      ModelConfig& model) {
  const std::vector<std::string> types = read_layer_names(config, key, model);
  for (size_t i = 0; i < types.size(); ++i) {
    const auto is = [&](std::string_view name, std::string_view old_name) {
      return types[i] == name || (!old_name.empty() && types[i] == old_name);
    };
    const bool has_attention = is(names.attention, names.old_attention);
    if (!has_attention && !is(names.state, names.old_state)) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}[{}]: '{}' is not supported; known are {}, {}",
                              config.path_of(key), i, types[i], names.attention, names.state));
    }
    set_mixer(model, static_cast<int64_t>(i), has_attention);
  }
}

void read_attention_layers(const JsonReader& config, std::string_view key, ModelConfig& model) {
  if (!config.has(key)) return;
  const Json& list = config.json().at(std::string(key));
  if (!list.is_array()) {
    fail_field(fmt::format("{}: expected a list of numbers of layers, got {}", config.path_of(key),
                           list.dump()));
  }
  for (int64_t i = 0; i < model.num_layers; ++i) set_mixer(model, i, false);
  for (const Json& item : list) {
    const bool is_layer =
        item.is_number_integer() && item.get<int64_t>() >= 0 && item < model.num_layers;
    if (!is_layer) {
      fail_field(fmt::format("{}: expected numbers of layers from 0 to {}, got {}",
                             config.path_of(key), model.num_layers - 1, item.dump()));
    }
    set_mixer(model, item.get<int64_t>(), true);
  }
}

void check_mixer_list(const JsonReader& config, std::string_view key, const ModelConfig& model) {
  if (!config.has(key)) return;
  const std::vector<std::string> names = read_layer_names(config, key, model);
  for (size_t i = 0; i < names.size(); ++i) {
    const bool has_attention = model.layers[i].has_attention;
    const bool says_attention = names[i] == "attention" || names[i] == "full_attention";
    const bool says_state = names[i] == "mamba" || names[i] == "linear_attention";
    if (has_attention ? says_attention : says_state) continue;
    fail_field(fmt::format("{}[{}]: '{}', but by the other fields the layer is of {}",
                           config.path_of(key), i, names[i],
                           has_attention ? "attention" : "mamba"));
  }
}

void use_attention_every(int64_t period, int64_t offset, ModelConfig& model) {
  for (int64_t i = 0; i < model.num_layers; ++i) set_mixer(model, i, i % period == offset);
}

void use_state_in_all_layers(ModelConfig& model) {
  for (int64_t i = 0; i < model.num_layers; ++i) set_mixer(model, i, false);
}

std::vector<float> read_factors(const JsonReader& config, std::string_view key, size_t count) {
  std::vector<float> out(count, 1.0F);
  if (!config.has(key)) return out;
  const Json& list = config.json().at(std::string(key));
  bool is_right = list.is_array() && list.size() == count;
  for (size_t i = 0; is_right && i < count; ++i) {
    is_right = list[i].is_number();
    if (is_right) out[i] = list[i].get<float>();
    is_right = is_right && std::isfinite(out[i]);
  }
  if (!is_right) {
    fail_field(
        fmt::format("{}: expected {} numbers, got {}", config.path_of(key), count, list.dump()));
  }
  return out;
}

void check_groups(const JsonReader& config, std::string_view key, const ModelConfig& model) {
  const StateConfig& state = model.state;
  if (state.num_heads % state.num_groups == 0) return;
  fail_field(fmt::format("{}: {} heads can't be dealt out to {} groups evenly", config.path_of(key),
                         state.num_heads, state.num_groups));
}

void use_mixers_alone(ModelConfig& model) {
  for (LayerPlan& layer : model.layers) layer.mlp = MlpKind::kNone;
}

void check_state_size(const JsonReader& config, std::string_view key, const ModelConfig& model) {
  const StateConfig& state = model.state;
  const int64_t channels = state.num_channels();
  if (channels > kMaxIntermediateSize || state.num_keys() > kMaxIntermediateSize ||
      channels * state.state_size > kMaxStateNumbers) {
    fail_field(
        fmt::format("{}: {} heads of {} with states of {} in {} groups are too many; at most "
                    "{} channels and {} numbers are expected",
                    config.path_of(key), state.num_heads, state.head_dim, state.state_size,
                    state.num_groups, kMaxIntermediateSize, kMaxStateNumbers));
  }
}

void read_mamba2(const JsonReader& config, const Mamba2Fields& fields, ModelConfig& model) {
  StateConfig& state = model.state;
  state.kind = StateKind::kMamba2;
  state.num_heads = read_size(config, fields.num_heads, fields.default_num_heads, kMaxHeads);
  state.state_size =
      read_size(config, fields.state_size, fields.default_state_size, kMaxHiddenSize);
  state.num_groups = read_size(config, fields.num_groups, fields.default_num_groups, kMaxHeads);
  state.conv_kernel =
      read_size(config, fields.conv_kernel, fields.default_conv_kernel, kMaxConvKernel);

  // Said twice: what heads make, and how much wider than the stream that is.
  int64_t channels = 0;
  std::string_view channels_name = fields.num_channels;
  if (!fields.num_channels.empty() && config.has(fields.num_channels)) {
    channels = read_size(config, fields.num_channels, 0, kMaxIntermediateSize);
  } else if (!fields.expand.empty()) {
    channels = expanded(config, fields.expand, fields.default_expand, model);
    channels_name = fields.expand;
  }
  const bool is_derived =
      !config.has(fields.head_dim) || config.json().at(std::string(fields.head_dim)) == "auto";
  if (is_derived && channels % state.num_heads == 0 && channels > 0) {
    state.head_dim = static_cast<int32_t>(channels / state.num_heads);
  } else {
    state.head_dim =
        read_size(config, fields.head_dim, fields.default_head_dim, kMaxIntermediateSize);
  }
  if (channels != 0 && channels != state.num_channels()) {
    fail_field(fmt::format("{}: makes {} channels, but {} heads of {} make {}",
                           config.path_of(channels_name), channels, state.num_heads, state.head_dim,
                           state.num_channels()));
  }
  check_groups(config, fields.num_groups, model);
  state.has_conv_bias = config.boolean_or(fields.conv_bias, true);
  state.has_in_bias = config.boolean_or(fields.in_bias, false);
  state.has_out_bias = config.boolean_or(fields.out_bias, false);
  state.has_norm = true;
  state.norm_eps = model.norm_eps;
  read_step_limit(config, fields.step_limit, state);
  check_state_size(config, fields.num_heads, model);
}

void read_mamba(const JsonReader& config, const MambaFields& fields, ModelConfig& model) {
  StateConfig& state = model.state;
  state.kind = StateKind::kMamba;
  state.num_heads = 1;
  const bool is_said = !fields.num_channels.empty() && config.has(fields.num_channels);
  state.head_dim = is_said ? read_size(config, fields.num_channels, 0, kMaxIntermediateSize)
                           : static_cast<int32_t>(expanded(config, fields.expand, 2.0, model));
  state.state_size =
      read_size(config, fields.state_size, fields.default_state_size, kMaxHiddenSize);
  state.conv_kernel =
      read_size(config, fields.conv_kernel, fields.default_conv_kernel, kMaxConvKernel);
  const bool is_auto =
      !config.has(fields.step_rank) || config.json().at(std::string(fields.step_rank)) == "auto";
  const int64_t automatic = (int64_t{model.hidden_size} + 15) / 16;
  state.step_rank = is_auto ? static_cast<int32_t>(automatic)
                            : read_size(config, fields.step_rank, automatic, kMaxHiddenSize);
  state.has_conv_bias = config.boolean_or(fields.conv_bias, true);
  state.has_in_bias = state.has_out_bias = config.boolean_or(fields.bias, false);
  check_state_size(config, fields.state_size, model);
}

}  // namespace tgi
