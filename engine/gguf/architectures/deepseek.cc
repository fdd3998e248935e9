// DeepSeek, its first MoE, V2 to V3.2, GLM 5, Mistral 4 and who took their latent attention. The
// matrix from latents to heads is stored as two: that of keys transposed.
#include <fmt/format.h>

#include <string>
#include <tuple>

#include "base/error.h"
#include "engine/gguf/architectures.h"

namespace tgi::gguf {

namespace {

// A tenth of yarn's factor for the scores is stored.
void read_score_factor(ModelReader& model) {
  Json& config = model.config;
  const auto tenth = model.find_number("rope.scaling.yarn_log_multiplier");
  if (!tenth || !config.contains("rope_scaling")) return;
  config["rope_scaling"]["mscale"] = *tenth * 10.0;
  config["rope_scaling"]["mscale_all_dim"] = *tenth * 10.0;
}

void read_ranks(ModelReader& model, int64_t num_heads, int64_t rotated) {
  Json& config = model.config;
  config["num_attention_heads"] = num_heads;
  config["num_key_value_heads"] = num_heads;
  config["kv_lora_rank"] = model.positive("attention.kv_lora_rank");
  const auto query_rank = model.find_integer("attention.q_lora_rank").value_or(0);
  config["q_lora_rank"] = query_rank > 0 ? Json(query_rank) : Json(nullptr);
  config["qk_rope_head_dim"] = rotated;
  config["attention_bias"] = model.has_tensor("blk.0.attn_kv_a_mqa.bias");
  read_rope(model, rotated);
}

}  // namespace

void read_latents(ModelReader& model) {
  Json& config = model.config;
  const auto num_heads = model.positive("attention.head_count");
  const auto rotated = model.integer("rope.dimension_count");
  // Files from before the heads were apart have their lengths under the plain names.
  const bool is_old = !model.has("attention.key_length_mla");
  const auto key_length =
      model.integer(is_old ? "attention.key_length" : "attention.key_length_mla");
  const auto value_length =
      model.integer(is_old ? "attention.value_length" : "attention.value_length_mla");
  for (const char* key :
       {"attention.key_length", "attention.value_length", "attention.head_count_kv"}) {
    model.pass_over(key);
  }
  config["qk_nope_head_dim"] = key_length - rotated;
  config["v_head_dim"] = value_length;
  read_ranks(model, num_heads, rotated);
  read_score_factor(model);
}

void name_latents(ModelReader& model) {
  const std::string attention = "model.layers.{layer}.self_attn.";
  model.name("blk.{layer}.attn_q", attention + "q_proj");
  model.name("blk.{layer}.attn_q_a", attention + "q_a_proj");
  model.name("blk.{layer}.attn_q_a_norm", attention + "q_a_layernorm");
  model.name("blk.{layer}.attn_q_b", attention + "q_b_proj");
  model.name("blk.{layer}.attn_kv_a_mqa", attention + "kv_a_proj_with_mqa");
  model.name("blk.{layer}.attn_kv_a_norm", attention + "kv_a_layernorm");
  model.name("blk.{layer}.attn_kv_b", attention + "kv_b_proj");
  model.name("blk.{layer}.attn_k_b", attention + "kv_b_proj(k)");
  model.name("blk.{layer}.attn_v_b", attention + "kv_b_proj(v)");
  model.name("blk.{layer}.attn_output", attention + "o_proj");
}

void read_minicpm3(ModelReader& model) {
  read_sizes(model, "MiniCPM3ForCausalLM", "minicpm3");
  Json& config = model.config;
  const int64_t num_heads = model.positive("attention.head_count");
  const int64_t rotated = model.positive("rope.dimension_count");
  const int64_t kept = model.positive("attention.key_length") - rotated;
  for (const char* key : {"attention.value_length", "attention.head_count_kv"}) {
    model.pass_over(key);
  }
  config["qk_nope_head_dim"] = kept;
  config["v_head_dim"] = model.tensor("blk.0.attn_kv_b.weight").shape.front() / num_heads - kept;
  read_ranks(model, num_heads, rotated);
  // What every published one has, and files do not say.
  config["scale_emb"] = 12;
  config["scale_depth"] = 1.4;
  config["dim_model_base"] = 256;
  name_outer(model);
  name_norms(model);
  name_latents(model);
  name_mlp(model);
}

namespace {

void read_indexer(ModelReader& model) {
  const std::string indexer = "model.layers.{layer}.self_attn.indexer.";
  model.config["index_topk"] = model.integer("attention.indexer.top_k");
  model.config["index_n_heads"] = model.integer("attention.indexer.head_count");
  model.config["index_head_dim"] = model.integer("attention.indexer.key_length");
  model.name("blk.{layer}.indexer.attn_q_b", indexer + "wq_b");
  model.name("blk.{layer}.indexer.attn_k", indexer + "wk");
  model.name("blk.{layer}.indexer.k_norm", indexer + "k_norm");
  model.name("blk.{layer}.indexer.proj", indexer + "weights_proj");
}

void read_sparse(ModelReader& model, const char* class_name, const char* model_type) {
  read_sizes(model, class_name, model_type);
  drop_predicting_layers(model);
  read_latents(model);
  read_indexer(model);
  read_deepseek_experts(model);
  expect_gating(model, kGatingSigmoid);
  name_outer(model);
  name_norms(model);
  name_latents(model);
  name_mlp(model);
  name_deepseek_experts(model);
}

}  // namespace

void read_deepseek32(ModelReader& model) {
  read_sparse(model, "DeepseekV32ForCausalLM", "deepseek_v32");
}

// Which layers choose is what their tensors say: some files have no attention.indexer.types.
void read_glm_dsa(ModelReader& model) {
  read_sparse(model, "GlmMoeDsaForCausalLM", "glm_moe_dsa");
  model.pass_over("attention.indexer.types");
  Json types = Json::array();
  const auto num_layers = model.config.at("num_hidden_layers").get<int64_t>();
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const bool chooses = model.has_tensor(fmt::format("blk.{}.indexer.attn_k.weight", layer));
    types.push_back(chooses ? "full" : "shared");
  }
  model.config["indexer_types"] = std::move(types);
}

// Queries are scaled by their position in each stretch of the first context's length.
void read_mistral4(ModelReader& model) {
  const std::string mlp = kMlp;
  read_sizes(model, "Mistral4ForCausalLM", "mistral4");
  read_latents(model);
  read_deepseek_experts(model);
  expect_gating(model, kGatingSoftmax);
  Json& config = model.config;
  const auto scaling = model.find_number("attention.temperature_scale");
  const auto stretch = model.find_integer("attention.temperature_length");
  if (scaling) {
    Json& rope = config["rope_scaling"];
    if (!rope.contains("rope_type")) rope["rope_type"] = "default";
    rope["llama_4_scaling_beta"] = *scaling;
    if (stretch && rope.value("original_max_position_embeddings", *stretch) != *stretch) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}.attention.temperature_length: {}, expected {}, as "
                              "rope.scaling.original_context_length has it",
                              model.architecture(), *stretch,
                              rope["original_max_position_embeddings"].dump()));
    }
    if (stretch) rope["original_max_position_embeddings"] = *stretch;
  }
  name_outer(model);
  name_norms(model);
  name_latents(model);
  name_mlp(model);
  model.name("blk.{layer}.ffn_gate_inp", mlp + ".gate");
  name_gate_up_stacks(model, mlp + ".experts");
  name_shared_experts(model, mlp + ".shared_experts");
}

void read_deepseek2(ModelReader& model) {
  if (model.has("attention.temperature_scale")) return read_mistral4(model);
  const bool has_experts = model.find_integer("expert_count").value_or(0) > 0;
  const bool is_third = model.find_integer("expert_gating_func").value_or(1) == kGatingSigmoid ||
                        model.find_layer_with("exp_probs_b.bias").has_value();
  const char* const class_name = !has_experts ? "YoutuForCausalLM"
                                 : is_third   ? "DeepseekV3ForCausalLM"
                                              : "DeepseekV2ForCausalLM";
  read_sizes(model, class_name, !has_experts ? "youtu" : is_third ? "deepseek_v3" : "deepseek_v2");
  drop_predicting_layers(model);
  read_latents(model);
  name_outer(model);
  name_norms(model);
  name_latents(model);
  name_mlp(model);
  if (!has_experts) {
    for (const char* key : {"expert_used_count", "expert_shared_count", "leading_dense_block_count",
                            "expert_weights_scale", "expert_weights_norm", "expert_group_count",
                            "expert_group_used_count", "expert_feed_forward_length"}) {
      model.pass_over(key);
    }
    return;
  }
  read_deepseek_experts(model);
  name_deepseek_experts(model);
  Json& config = model.config;
  if (is_third) return;
  config["topk_method"] =
      config.at("n_group").get<int64_t>() > 1 ? "group_limited_greedy" : "greedy";
}

// The first DeepSeek MoE: Llama's attention. Its experts' weights are neither normed nor scaled.
void read_deepseek(ModelReader& model) {
  read_decoder(model, "DeepseekForCausalLM", "deepseek");
  read_deepseek_experts(model);
  expect_gating(model, kGatingSoftmax);
  Json& config = model.config;
  for (const auto& [key, name, expected] :
       {std::tuple{"expert_group_count", "n_group", Json(1)},
        std::tuple{"expert_group_used_count", "topk_group", Json(1)},
        std::tuple{"expert_weights_scale", "routed_scaling_factor", Json(1.0)}}) {
    if (config.at(name) != expected) {
      throw Error(Code::kUnsupported, fmt::format("{}.{}: {}, expected {}", model.architecture(),
                                                  key, config.at(name).dump(), expected.dump()));
    }
    config.erase(name);
  }
  read_attention_bias(model);
  name_outer(model);
  name_norms(model);
  name_rotated_attention(model);
  name_mlp(model);
  name_deepseek_experts(model);
}

}  // namespace tgi::gguf
