// Llama, Mistral and all that took their block, and Mixtral: experts are in the file or not.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

void name_mixtral_experts(ModelReader& model) {
  const std::string moe = "model.layers.{layer}.block_sparse_moe.";
  model.name("blk.{layer}.ffn_gate_inp", moe + "gate");
  model.name("blk.{layer}.ffn_gate_exps", moe + "experts.{expert}.w1");
  model.name("blk.{layer}.ffn_down_exps", moe + "experts.{expert}.w2");
  model.name("blk.{layer}.ffn_up_exps", moe + "experts.{expert}.w3");
}

namespace {

// Mixtral's files of the first months have a tensor for each expert.
void name_single_experts(ModelReader& model, int64_t num_experts) {
  const std::string moe = "model.layers.{layer}.block_sparse_moe.";
  for (int64_t expert = 0; expert < num_experts; ++expert) {
    for (const auto& [stored, name] :
         {std::pair{"ffn_gate", "w1"}, {"ffn_down", "w2"}, {"ffn_up", "w3"}}) {
      model.name(fmt::format("blk.{{layer}}.{}.{}", stored, expert),
                 fmt::format("{}experts.{}.{}", moe, expert, name));
    }
  }
}

}  // namespace

void read_llama(ModelReader& model) {
  const auto num_experts = model.find_integer("expert_count").value_or(0);
  const auto used = model.find_integer("expert_used_count");
  if (num_experts > 0) {
    read_decoder(model, "MixtralForCausalLM", "mixtral");
    model.config["num_local_experts"] = num_experts;
    if (used) model.config["num_experts_per_tok"] = *used;
    name_mixtral_experts(model);
    if (model.find_layer_with("ffn_gate.0.weight")) name_single_experts(model, num_experts);
  } else {
    read_decoder(model, "LlamaForCausalLM", "llama");
    read_biases(model);
    // Llama's class has all four biases of attention or none, Seed-OSS's says it of each.
    const bool has_output_bias = model.find_layer_with("attn_output.bias").has_value();
    const bool has_qkv_bias = model.config.at("attention_bias");
    if (has_qkv_bias != has_output_bias) {
      model.config["architectures"] = Json::array({"SeedOssForCausalLM"});
      model.config["model_type"] = "seed_oss";
      model.config["attention_out_bias"] = has_output_bias;
    }
    name_mlp(model);
  }
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
}

// Mistral Small 3, and Ministral 3, whose queries are scaled by their position.
void read_mistral3(ModelReader& model) {
  const auto scaling = model.find_number("attention.temperature_scale");
  const auto score_factor = model.find_number("rope.scaling.yarn_log_multiplier");
  if (!scaling) return read_llama(model);
  read_decoder(model, "Ministral3ForCausalLM", "ministral3");
  Json& rope = model.config["rope_scaling"];
  rope["llama_4_scaling_beta"] = *scaling;
  if (score_factor) rope["mscale"] = rope["mscale_all_dim"] = *score_factor;
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
  name_mlp(model);
}

// Llama whose layers may be run several times over, which is not built.
void read_nanbeige(ModelReader& model) {
  const int64_t num_loops = model.find_integer("num_loops").value_or(1);
  if (num_loops != 1) {
    throw Error(Code::kUnsupported,
                fmt::format("nanbeige.num_loops: {}, expected 1: layers that are run several times "
                            "are not supported",
                            num_loops));
  }
  model.pass_over("skip_loop_final_norm");  // of one loop there is nothing between
  read_llama(model);
}

// Of 7B; those of 13B, which llama.cpp knows by their layers, have ALiBi in place of rotation.
void read_baichuan(ModelReader& model) {
  constexpr int64_t kLayersOf13B = 40;
  if (model.num_layers() == kLayersOf13B) {
    throw Error(Code::kUnsupported,
                fmt::format("baichuan.block_count: {} layers are those of Baichuan 13B, whose "
                            "positions (ALiBi) are not read from GGUF files; load the folder of "
                            "Hugging Face",
                            kLayersOf13B));
  }
  read_llama(model);
}

// Llama with biases in attention, and heads as they are elsewhere.
void read_pangu_embedded(ModelReader& model) {
  read_decoder(model, "LlamaForCausalLM", "llama");
  read_biases(model);
  name_decoder(model);
}

// EXAONE 3 is Llama with heads as they are elsewhere.
void read_exaone(ModelReader& model) {
  read_decoder(model, "LlamaForCausalLM", "llama");
  name_decoder(model);
}

}  // namespace tgi::gguf
