// What the readers of EXAONE 3, IQuest-Coder, A.X K1 and Sarvam make of their own fields, and what
// they refuse.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::latest_families_test {
namespace {

ModelConfig read(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config).config;
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

TEST_CASE("a class that computes several families is that of the model_type") {
  const Json config = {{"architectures", {"LlamaForCausalLM"}}, {"model_type", "exaone"}};
  CHECK(load_config(config).config.architecture == "ExaoneForCausalLM");
  CHECK(load_config(config).config.vocab_size == 102400);
  const auto family_of = [](const char* name, const char* type) {
    return load_config({{"architectures", {name}}, {"model_type", type}, {"head_dim", 128}})
        .config.architecture;
  };
  CHECK(family_of("LlamaForCausalLM", "iquestcoder") == "IQuestCoderForCausalLM");
  CHECK(family_of("Glm4MoeForCausalLM", "sarvam_moe") == "SarvamMoEForCausalLM");
  CHECK(family_of("DeepseekV3ForCausalLM", "sarvam_mla") == "SarvamMLAForCausalLM");
  CHECK(family_of("Glm4MoeForCausalLM", "glm4_moe") == "Glm4MoeForCausalLM");
  CHECK(family_of("LlamaForCausalLM", "llama") == "LlamaForCausalLM");
  // What computes another is no name of it.
  CHECK_THAT(refused("LlamaForCausalLM", {{"model_type", "sarvam_moe"}}, Code::kInvalidArgument),
             Catch::Contains("'sarvam_moe' does not go with the architecture LlamaForCausalLM"));
}

TEST_CASE("EXAONE 3 takes the names of its fields that others have, and no contradiction") {
  const ModelConfig model =
      read("ExaoneForCausalLM",
           {{"num_layers", 3}, {"layer_norm_epsilon", 1e-3}, {"activation_function", "gelu"}});
  CHECK(model.num_layers == 3);
  CHECK(model.norm_eps == 1e-3F);
  CHECK(model.activation == Activation::kGelu);
  CHECK_THAT(refused("ExaoneForCausalLM", {{"num_layers", 3}, {"num_hidden_layers", 4}},
                     Code::kInvalidArgument),
             Catch::Contains("contradicts"));
}

TEST_CASE("IQuest-Coder refuses what its class refuses") {
  CHECK_THAT(refused("IQuestCoderForCausalLM", {{"clip_qkv", 3.0}}, Code::kUnsupported),
             Catch::Contains("clip_qkv"));
  CHECK_THAT(refused("IQuestCoderForCausalLM", {{"use_sliding_window", true}}, Code::kUnsupported),
             Catch::Contains("use_sliding_window"));
}

TEST_CASE("A.X K1 norms what experts give, in no other layer, and has experts by either spelling") {
  const Json config = {{"num_hidden_layers", 3},
                       {"mlp_layer_types", {"sparse", "dense", "sparse"}}};
  Json named = config;
  named["architectures"] = {"AXK1ForCausalLM"};
  const LoadedConfig loaded = load_config(named);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kMlpPostNorm, 0) != nullptr);
  CHECK(table.find(Role::kMlpPostNorm, 1) == nullptr);
  CHECK(table.find(Role::kChoiceBias, 2) != nullptr);  // nobody knows of a file without it
  const ModelConfig old =
      read("AXK1ForCausalLM", {{"num_hidden_layers", 3}, {"first_k_dense_replace", 2}});
  CHECK(old.layers[1].mlp == MlpKind::kDense);
  CHECK(old.layers[2].mlp == MlpKind::kExperts);
  CHECK_THAT(refused("AXK1ForCausalLM", {{"moe_layer_freq", 2}}, Code::kUnsupported),
             Catch::Contains("moe_layer_freq"));
}

TEST_CASE("Sarvam's older spellings mean what the newer ones do") {
  const Json newer = {{"n_routed_experts", 12}, {"n_shared_experts", 2}, {"attention_bias", true}};
  const Json older = {{"num_experts", 12}, {"num_shared_experts", 2}, {"use_qkv_bias", true}};
  for (const Json& config : {newer, older}) {
    const ModelConfig model = read("SarvamMoEForCausalLM", config);
    CHECK(model.experts.num_experts == 12);
    CHECK(model.experts.shared_intermediate_size == 2 * model.experts.intermediate_size);
    CHECK(model.attention_bias);
  }
  const auto rope = [](const char* type) {
    return read("SarvamMLAForCausalLM",
                {{"rope_theta", 10000.0},
                 {"rope_scaling",
                  {{"type", type}, {"factor", 4.0}, {"original_max_position_embeddings", 4096}}}})
        .ropes.front()
        .inv_freq;
  };
  CHECK(rope("deepseek_yarn") == rope("yarn"));
  CHECK_THAT(refused("SarvamMoEForCausalLM", {{"score_function", "softmax"}}, Code::kUnsupported),
             Catch::Contains("score_function"));
  // Ling 2.0 is the same by its own name, with half of a head rotated.
  const ModelConfig ling = read("BailingMoeV2ForCausalLM", {{"model_type", "bailing_moe"},
                                                            {"head_dim", 128},
                                                            {"partial_rotary_factor", 0.5},
                                                            {"n_group", 8},
                                                            {"topk_group", 4},
                                                            {"use_rmsnorm", true}});
  CHECK(ling.ropes.front().rotary_dim == 64);
  CHECK(ling.experts.route.num_groups == 8);
  CHECK(ling.has_qk_norm);
}

}  // namespace
}  // namespace tgi::latest_families_test
