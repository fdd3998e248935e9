// What decoders with experts have in common.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/gguf/model_reader.h"

namespace tgi::gguf {

Json read_mlp_layer_types(const ModelReader& model) {
  Json kinds = Json::array();
  for (const bool is_sparse : layers_with(model, "ffn_gate_inp.weight")) {
    kinds.push_back(is_sparse ? "sparse" : "dense");
  }
  return kinds;
}

void read_experts(ModelReader& model, const char* count_field, const char* width_field) {
  model.config[count_field] = model.integer("expert_count");
  model.config["num_experts_per_tok"] = model.integer("expert_used_count");
  if (model.has("expert_feed_forward_length")) {
    model.config[width_field] = model.one_integer("expert_feed_forward_length");
    return;
  }
  // ollama's converter leaves it to the tensors: (experts, rows, width).
  const auto layer = model.find_layer_with("ffn_down_exps.weight");
  if (!layer) return;
  model.config[width_field] =
      model.tensor(fmt::format("blk.{}.ffn_down_exps.weight", *layer)).shape.back();
}

void expect_gating(ModelReader& model, int64_t expected) {
  const int64_t given = model.find_integer("expert_gating_func").value_or(0);
  if (given == 0 || given == expected) return;  // 0: not said
  throw Error(Code::kUnsupported,
              fmt::format("{}.expert_gating_func: {}, expected {} ({}), which models of this "
                          "architecture have",
                          model.architecture(), given, expected,
                          expected == kGatingSigmoid ? "sigmoid" : "softmax"));
}

void expect_normed_weights(ModelReader& model) {
  if (model.find_boolean("expert_weights_norm").value_or(true)) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}.expert_weights_norm: false, expected true, which models of this "
                          "architecture have",
                          model.architecture()));
}

void name_experts(ModelReader& model, const std::string& experts) {
  model.name("blk.{layer}.ffn_gate_exps", experts + ".{expert}.gate_proj");
  model.name("blk.{layer}.ffn_up_exps", experts + ".{expert}.up_proj");
  model.name("blk.{layer}.ffn_down_exps", experts + ".{expert}.down_proj");
}

void name_choice_bias(ModelReader& model, const std::string& name, std::vector<int64_t> shape) {
  model.rules.push_back({.stored = "blk.{layer}.exp_probs_b",
                         .name = name,
                         .shape = std::move(shape),
                         .bias_suffix = ""});
}

void name_shared_experts(ModelReader& model, const std::string& experts) {
  model.name("blk.{layer}.ffn_gate_shexp", experts + ".gate_proj");
  model.name("blk.{layer}.ffn_up_shexp", experts + ".up_proj");
  model.name("blk.{layer}.ffn_down_shexp", experts + ".down_proj");
}

void read_deepseek_experts(ModelReader& model) {
  Json& config = model.config;
  read_experts(model, "n_routed_experts", "moe_intermediate_size");
  config["n_shared_experts"] = model.find_integer("expert_shared_count").value_or(0);
  // Not every file says how many layers have none; the tensors do.
  model.pass_over("leading_dense_block_count");
  config["first_k_dense_replace"] =
      model.find_layer_with("ffn_gate_inp.weight").value_or(model.num_layers());
  config["n_group"] = model.find_integer("expert_group_count").value_or(1);
  config["topk_group"] = model.find_integer("expert_group_used_count").value_or(1);
  config["norm_topk_prob"] = model.find_boolean("expert_weights_norm").value_or(false);
  config["routed_scaling_factor"] = model.find_number("expert_weights_scale").value_or(1.0);
}

void name_deepseek_experts(ModelReader& model, const std::string& mlp) {
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".gate");
  name_choice_bias(model, mlp + ".gate.e_score_correction_bias");
  name_experts(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_experts");
}

void name_gate_up_stacks(ModelReader& model, const std::string& experts) {
  name_bare(model, "blk.{layer}.ffn_gate_up_exps", experts + ".gate_up_proj");
  name_expert_stacks(model, experts, "gate_up_proj(0)", "gate_up_proj(1)", "down_proj");
}

void name_expert_stacks(ModelReader& model,
                        const std::string& experts,
                        const char* gate,
                        const char* up,
                        const char* down) {
  const auto add = [&](const char* stored, const char* name) {
    model.rules.push_back({.stored = stored, .name = experts + "." + name, .bias_suffix = "_bias"});
  };
  add("blk.{layer}.ffn_gate_exps", gate);
  add("blk.{layer}.ffn_up_exps", up);
  add("blk.{layer}.ffn_down_exps", down);
}

}  // namespace tgi::gguf
