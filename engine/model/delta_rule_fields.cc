#include "engine/model/delta_rule_fields.h"

#include <cstdint>

#include "engine/model/rope.h"
#include "engine/model/state_fields.h"

namespace tgi {
namespace {

void read_delta_layers(const JsonReader& config, ModelConfig& model) {
  if (config.has("layer_types")) {
    return read_mixer_types(config, "layer_types",
                            {.attention = "full_attention", .state = "linear_attention"}, model);
  }
  const int32_t interval = read_size(config, "full_attention_interval", 4, kMaxLayers);
  use_attention_every(interval, interval - 1, model);
}

}  // namespace

void read_delta_rule(const JsonReader& config,
                     const DeltaRuleDefaults& defaults,
                     ModelConfig& model) {
  StateConfig& state = model.state;
  state.kind = StateKind::kDeltaRule;
  state.conv_kernel = read_size(config, "linear_conv_kernel_dim", 4, kMaxConvKernel);
  state.num_groups = read_size(config, "linear_num_key_heads", defaults.num_key_heads, kMaxHeads);
  state.num_heads =
      read_size(config, "linear_num_value_heads", defaults.num_value_heads, kMaxHeads);
  state.state_size = read_size(config, "linear_key_head_dim", defaults.key_head_dim, kMaxHeadDim);
  state.head_dim = read_size(config, "linear_value_head_dim", defaults.value_head_dim, kMaxHeadDim);
  state.has_norm = true;
  state.norm_first = true;
  state.norm_eps = model.norm_eps;
  check_groups(config, "linear_num_value_heads", model);
  check_state_size(config, "linear_num_value_heads", model);
}

void read_channel_delta(const JsonReader& config,
                        const ChannelDeltaDefaults& defaults,
                        ModelConfig& model) {
  StateConfig& state = model.state;
  state.kind = StateKind::kDeltaRule;
  state.conv_kernel = read_size(config, "linear_conv_kernel_dim", 4, kMaxConvKernel);
  state.num_heads = read_size(config, "linear_num_heads", defaults.num_heads, kMaxHeads);
  state.head_dim = read_size(config, "linear_head_dim", defaults.head_dim, kMaxHeadDim);
  state.num_groups = state.num_heads;
  state.state_size = state.head_dim;
  state.decays_numbers = true;
  state.gate = GateKind::kSigmoid;
  state.has_norm = true;
  state.norm_first = true;
  state.norm_eps = model.norm_eps;
  check_state_size(config, "linear_num_heads", model);
}

ModelConfig read_gated_delta_decoder(const JsonReader& config, const DecoderFields& fields) {
  ModelConfig model = read_decoder_config(config, fields);
  model.norm_weight_offset = 1.0F;
  model.has_output_gate = true;
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.25});
  read_delta_rule(config, {}, model);
  read_delta_layers(config, model);
  return model;
}

}  // namespace tgi
