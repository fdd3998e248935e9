#include "engine/gguf/state_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tgi::gguf {
namespace {

void write(ModelReader& model, const std::string& field, const Json& value) {
  if (!field.empty()) model.config[field] = value;
}

void read_common(ModelReader& model, const StateFields& fields) {
  write(model, fields.state_size, model.positive("ssm.state_size"));
  write(model, fields.conv_kernel, model.positive("ssm.conv_kernel"));
  const auto has = [&](const char* tensor) { return model.find_layer_with(tensor).has_value(); };
  write(model, fields.conv_bias, has("ssm_conv1d.bias"));
  write(model, fields.in_bias, has("ssm_in.bias"));
  write(model, fields.out_bias, has("ssm_out.bias"));
}

void name_common(ModelReader& model, const std::string& mixer, int64_t num_channels) {
  model.name("blk.{layer}.ssm_in", mixer + ".in_proj");
  model.name("blk.{layer}.ssm_out", mixer + ".out_proj");
  model.rules.push_back({.stored = "blk.{layer}.ssm_conv1d",
                         .name = mixer + ".conv1d",
                         .shape_of_weight = {num_channels, 1, model.positive("ssm.conv_kernel")}});
}

}  // namespace

StateFields hybrid_state_fields() {
  return {.num_heads = "mamba_n_heads",
          .head_dim = "mamba_d_head",
          .state_size = "mamba_d_state",
          .num_groups = "mamba_n_groups",
          .conv_kernel = "mamba_d_conv",
          .conv_bias = "mamba_conv_bias",
          .in_bias = "mamba_proj_bias"};
}

void read_mamba2_state(ModelReader& model, const StateFields& fields) {
  read_common(model, fields);
  const int64_t channels = model.positive("ssm.inner_size");
  const int64_t num_heads = model.positive("ssm.time_step_rank");  // that is what it holds here
  if (channels % num_heads != 0) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}.ssm.inner_size: expected a multiple of ssm.time_step_rank, {}, got {}",
                    model.architecture(), num_heads, channels));
  }
  write(model, fields.num_heads, num_heads);
  write(model, fields.head_dim, channels / num_heads);
  write(model, fields.num_groups, model.positive("ssm.group_count"));
}

void read_mamba1_state(ModelReader& model, const StateFields& fields, const char* rank_field) {
  read_common(model, fields);
  model.config[rank_field] = model.positive("ssm.time_step_rank");
}

double state_expansion(ModelReader& model) {
  const auto width = static_cast<double>(model.positive("ssm.inner_size"));
  return width / model.config.at("hidden_size").get<double>();
}

void name_mamba2(ModelReader& model, const std::string& mixer) {
  const int64_t channels = model.positive("ssm.inner_size");
  const int64_t num_heads = model.positive("ssm.time_step_rank");
  const int64_t keys = model.positive("ssm.group_count") * model.positive("ssm.state_size");
  name_common(model, mixer, channels + 2 * keys);
  model.rules.push_back(
      {.stored = "blk.{layer}.ssm_dt", .name = mixer + ".dt_bias", .bias_suffix = ""});
  model.rules.push_back({.stored = "blk.{layer}.ssm_a",
                         .name = mixer + ".A_log",
                         .change = Change::kMinusExp,
                         .shape = {num_heads}});
  model.rules.push_back(
      {.stored = "blk.{layer}.ssm_d", .name = mixer + ".D", .shape = {num_heads}});
  model.rules.push_back(
      {.stored = "blk.{layer}.ssm_norm", .name = mixer + ".norm", .shape = {channels}});
}

void name_mamba1(ModelReader& model, const std::string& mixer) {
  name_common(model, mixer, model.positive("ssm.inner_size"));
  model.name("blk.{layer}.ssm_x", mixer + ".x_proj");
  model.name("blk.{layer}.ssm_dt", mixer + ".dt_proj");
  model.name("blk.{layer}.ssm_a", mixer + ".A_log", {}, Change::kMinusExp);
  model.name("blk.{layer}.ssm_d", mixer + ".D");
}

void name_backbone(ModelReader& model) {
  model.name("token_embd", "backbone.embeddings");
  model.name("output_norm", "backbone.norm_f");
  model.name("output", "lm_head");
  model.name("blk.{layer}.attn_norm", "backbone.layers.{layer}.norm");
}

void name_hybrid_block(ModelReader& model) {
  model.name("token_embd", "model.embed_tokens");
  model.name("output", "lm_head");
  model.name("output_norm", "model.final_layernorm");
  model.name("blk.{layer}.attn_norm", "model.layers.{layer}.input_layernorm");
  name_mlp(model, "model.layers.{layer}.feed_forward");
}

std::vector<bool> read_heads_of_layers(ModelReader& model) {
  std::vector<bool> out;
  for (const int64_t count : model.integers_of_layers("attention.head_count_kv")) {
    out.push_back(count > 0);
  }
  const int64_t num_kv_heads = model.one_of_layers("attention.head_count_kv");
  Json& config = model.config;
  const int64_t num_heads = model.positive("attention.head_count");
  const auto hidden = config.at("hidden_size").get<int64_t>();
  const bool has_length = model.has("attention.key_length");
  config["num_attention_heads"] = num_heads;
  config["num_key_value_heads"] = std::max<int64_t>(num_kv_heads, 1);
  config["head_dim"] = has_length ? model.positive("attention.key_length") : hidden / num_heads;
  model.pass_over("attention.value_length");
  return out;
}

Stride stride_of(const std::vector<bool>& is_in, const std::string& what) {
  const auto count = static_cast<int64_t>(is_in.size());
  const auto first = std::ranges::find(is_in, true) - is_in.begin();
  if (first == count) return {.period = count + 1, .offset = count};
  const auto second = std::find(is_in.begin() + first + 1, is_in.end(), true) - is_in.begin();
  const Stride out{.period = std::max<int64_t>(second - first, first + 1), .offset = first};
  for (int64_t layer = 0; layer < count; ++layer) {
    if (is_in[static_cast<size_t>(layer)] == (layer % out.period == out.offset)) continue;
    throw Error(Code::kUnsupported,
                fmt::format("{}: expected them at a regular distance, but layer {} is not where "
                            "those before it say",
                            what, layer));
  }
  return out;
}

}  // namespace tgi::gguf
