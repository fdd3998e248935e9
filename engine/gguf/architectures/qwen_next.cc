// Qwen3-Next and Qwen 3.5, with experts or without: the gated delta rule in most layers. All are
// read as Qwen 3.5, which has the rule's inputs apart as files do.
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

constexpr const char* kStateOutput = "ssm_out.weight";  // of the delta rule's layers alone

struct DeltaSizes {
  int64_t num_key_heads;
  int64_t num_value_heads;
  int64_t key_dim;
  int64_t value_dim;
};

DeltaSizes read_delta_sizes(ModelReader& model) {
  DeltaSizes out{.num_key_heads = model.positive("ssm.group_count"),
                 .num_value_heads = model.positive("ssm.time_step_rank"),
                 .key_dim = model.positive("ssm.state_size"),
                 .value_dim = 0};
  const int64_t width = model.positive("ssm.inner_size");
  if (width % out.num_value_heads != 0 || out.num_value_heads % out.num_key_heads != 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}.ssm: a width of {} can't be that of {} heads in {} groups",
                            model.architecture(), width, out.num_value_heads, out.num_key_heads));
  }
  out.value_dim = width / out.num_value_heads;
  return out;
}

// Value heads take the groups in turn, elsewhere all of a group follow each other. To put them in
// that order, columns of a matrix would have to move, which blocks of quantised numbers don't
// allow. A group of its own for each value head, with the same keys, is the same sum.
RowOrder with_own_keys(const DeltaSizes& sizes) {
  const int64_t keys = sizes.num_key_heads * sizes.key_dim;
  const int64_t values = sizes.num_value_heads * sizes.value_dim;
  return {.name = "own keys", .count = 2 * keys + values, .rows = [sizes, keys, values] {
            std::vector<int32_t> out;
            for (const int64_t first : {int64_t{0}, keys}) {
              for (int64_t head = 0; head < sizes.num_value_heads; ++head) {
                const int64_t row = first + head % sizes.num_key_heads * sizes.key_dim;
                for (int64_t i = 0; i < sizes.key_dim; ++i)
                  out.push_back(static_cast<int32_t>(row + i));
              }
            }
            for (int64_t i = 0; i < values; ++i) out.push_back(static_cast<int32_t>(2 * keys + i));
            return out;
          }};
}

// Of two numbers for each value head that take turns by group: the first or the second.
RowOrder half_of_groups(const DeltaSizes& sizes, int64_t half) {
  return {.name = fmt::format("half {}", half), .count = 2 * sizes.num_value_heads, .rows = [=] {
            const int64_t each = sizes.num_value_heads / sizes.num_key_heads;
            std::vector<int32_t> out;
            for (int64_t head = 0; head < sizes.num_value_heads; ++head) {
              const int64_t group = head / each;
              out.push_back(static_cast<int32_t>((2 * group + half) * each + head % each));
            }
            return out;
          }};
}

Json read_mixer_types(const ModelReader& model) {
  Json out = Json::array();
  for (const bool has_state : layers_with(model, kStateOutput)) {
    out.push_back(has_state ? "linear_attention" : "full_attention");
  }
  return out;
}

void read_delta(ModelReader& model, bool take_turns) {
  const bool has_experts = model.find_integer("expert_count").value_or(0) > 0;
  read_decoder(model, has_experts ? "Qwen3_5MoeForCausalLM" : "Qwen3_5ForCausalLM",
               has_experts ? "qwen3_5_moe_text" : "qwen3_5_text");
  drop_predicting_layers(model);
  state_rotary_part(model);
  for (const char* key :
       {"rope.dimension_sections", "attention.recurrent_layers", "full_attention_interval"}) {
    model.pass_over(key);  // text has one position; tensors say which layers are which
  }
  const DeltaSizes sizes = read_delta_sizes(model);
  const bool needs_own_keys = take_turns && sizes.num_key_heads != sizes.num_value_heads;
  Json& config = model.config;
  config["layer_types"] = read_mixer_types(model);
  config["linear_conv_kernel_dim"] = model.positive("ssm.conv_kernel");
  config["linear_key_head_dim"] = sizes.key_dim;
  config["linear_value_head_dim"] = sizes.value_dim;
  config["linear_num_value_heads"] = sizes.num_value_heads;
  config["linear_num_key_heads"] = needs_own_keys ? sizes.num_value_heads : sizes.num_key_heads;
  name_outer(model, Change::kPlusOne);
  const std::string layer = "model.layers.{layer}.";
  model.name("blk.{layer}.attn_norm", layer + "input_layernorm", {}, Change::kPlusOne);
  model.name("blk.{layer}.post_attention_norm", layer + "post_attention_layernorm", {},
             Change::kPlusOne);
  name_projections(model, layer + "self_attn");
  name_qk_norms(model, Change::kPlusOne);
  const std::string rule = layer + "linear_attn.";
  const RowOrder order = needs_own_keys ? with_own_keys(sizes) : RowOrder{};
  model.rules.push_back({.stored = "blk.{layer}.attn_qkv",
                         .name = rule + "in_proj_qkv",
                         .order = order,
                         .beside = kStateOutput});
  model.q_rows_of_output = 2;  // in the other layers, where heads have gates
  model.rules.push_back({.stored = "blk.{layer}.ssm_conv1d",
                         .name = rule + "conv1d",
                         .order = order,
                         .shape_of_weight = {2 * sizes.num_key_heads * sizes.key_dim +
                                                 sizes.num_value_heads * sizes.value_dim,
                                             1, model.positive("ssm.conv_kernel")}});
  model.name("blk.{layer}.attn_gate", rule + "in_proj_z");
  model.name("blk.{layer}.ssm_alpha", rule + "in_proj_a");
  model.name("blk.{layer}.ssm_beta", rule + "in_proj_b");
  model.name("blk.{layer}.ssm_ba", rule + "in_proj_b", half_of_groups(sizes, 0));
  model.name("blk.{layer}.ssm_ba", rule + "in_proj_a", half_of_groups(sizes, 1));
  model.rules.push_back(
      {.stored = "blk.{layer}.ssm_dt", .name = rule + "dt_bias", .bias_suffix = ""});
  model.name("blk.{layer}.ssm_a", rule + "A_log", {}, Change::kMinusExp);
  model.name("blk.{layer}.ssm_norm", rule + "norm");
  model.name("blk.{layer}.ssm_out", rule + "out_proj");
  if (has_experts) {
    read_experts(model, "num_experts", "moe_intermediate_size");
    expect_normed_weights(model);
    config["shared_expert_intermediate_size"] = model.integer("expert_shared_feed_forward_length");
    name_qwen_experts(model);
  } else {
    name_mlp(model);
  }
}

}  // namespace

void read_qwen3next(ModelReader& model) {
  read_delta(model, false);
}

void read_qwen35(ModelReader& model) {
  read_delta(model, true);
}

}  // namespace tgi::gguf
