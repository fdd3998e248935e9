// What the readers of Lara 4 Mini, Aria, Persimmon and BioGPT make of their own fields, and what
// they refuse.
#include <string>

#include "engine/model/architecture.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::fourth_families_test {
namespace {

ModelConfig read(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config).config;
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

TEST_CASE("Lara 4 Mini's layers are of three kinds, and only those with a window are rotated") {
  const Json types = {"full_attention", "linear_attention", "sliding_attention"};
  const ModelConfig model =
      read("LaraMiniForCausalLM",
           {{"num_hidden_layers", 3}, {"layer_types", types}, {"sliding_window", 9}});
  CHECK(model.layers[0].has_attention);
  CHECK_FALSE(model.layers[0].has_state);
  CHECK(model.layers[0].sliding_window == 0);
  CHECK(model.layers[0].rope == kNoRope);
  CHECK_FALSE(model.layers[1].has_attention);
  CHECK(model.layers[1].has_state);
  CHECK(model.layers[2].sliding_window == 9);
  CHECK(model.layers[2].rope == 0);

  const ModelConfig by_default = read("LaraMiniForCausalLM", {{"num_hidden_layers", 6}});
  CHECK(by_default.layers[0].has_state);
  CHECK(by_default.layers[1].sliding_window == 512);
  CHECK(by_default.layers[3].rope == kNoRope);
  CHECK(by_default.layers[5].has_state);
  CHECK(by_default.tied_embeddings);

  const auto with = [](const Json& list) {
    return Json{{"num_hidden_layers", 2}, {"layer_types", list}};
  };
  CHECK_THAT(refused("LaraMiniForCausalLM", with({"full_attention"}), Code::kInvalidArgument),
             Catch::Contains("expected 2 entries, one per layer, got 1"));
  CHECK_THAT(refused("LaraMiniForCausalLM", with({"full_attention", "mamba"}), Code::kUnsupported),
             Catch::Contains("layer_types[1]: 'mamba' is not supported"));
}

TEST_CASE("the inputs of Lara 4 Mini's rule are one tensor, experts one or several of a kind") {
  const LoadedConfig loaded = load_config({{"architectures", {"LaraMiniForCausalLM"}}});
  const TensorTable table(loaded);
  const TensorEntry* in = table.find(Role::kStateIn, 0);
  REQUIRE(in != nullptr);
  CHECK(in->rows == 2 * 8 * 128 + 2 * 16 * 128 + 2 * 16);
  CHECK(table.find(Role::kStateIn, 1) == nullptr);
  CHECK(table.find(Role::kSharedOutputGate, 0) == nullptr);
}

TEST_CASE("Aria's shared experts are so many of the others in one") {
  const ModelConfig model =
      read("AriaTextForCausalLM", {{"intermediate_size", 100}, {"moe_num_shared_experts", 3}});
  CHECK(model.experts.shared_intermediate_size == 300);
  CHECK(model.experts.intermediate_size == 100);
  CHECK(model.experts.route.normalises);
  CHECK_THAT(refused("AriaTextForCausalLM", {{"hidden_act", "gelu"}}, Code::kUnsupported),
             Catch::Contains("are silu, got \"gelu\""));
  CHECK_THAT(refused("AriaTextForCausalLM", {{"moe_topk", 9}}, Code::kInvalidArgument),
             Catch::Contains("9 experts for a token, but moe_num_experts is 8"));
  CHECK_THAT(refused("AriaTextForCausalLM", {{"mlp_bias", true}}, Code::kUnsupported),
             Catch::Contains("mlp_bias"));
  CHECK_THAT(refused("AriaTextForCausalLM",
                     {{"intermediate_size", 4000000}, {"moe_num_shared_experts", 16000}},
                     Code::kInvalidArgument),
             Catch::Contains("moe_num_shared_experts"));
}

TEST_CASE("Persimmon norms heads unless told not to, and rotates half of one") {
  const ModelConfig model = read("PersimmonForCausalLM", Json::object());
  CHECK(model.has_qk_norm);
  CHECK(model.ropes.front().rotary_dim == 32);
  const LoadedConfig plain =
      load_config({{"architectures", {"PersimmonForCausalLM"}}, {"qk_layernorm", false}});
  CHECK(TensorTable(plain).find(Role::kQNorm, 0) == nullptr);
  CHECK(TensorTable(plain).find(Role::kKNormBias, 0) == nullptr);
}

TEST_CASE("BioGPT's norms have 1e-5 whatever its config says, as its class has them") {
  const ModelConfig model = read("BioGptForCausalLM", {{"layer_norm_eps", 1e-12}});
  CHECK(model.norm_eps == 1e-5F);
  CHECK(model.embedding_multiplier == 32.0F);
  CHECK(model.position_offset == 2);
  CHECK(read("BioGptForCausalLM", {{"scale_embedding", false}}).embedding_multiplier == 1.0F);
}

}  // namespace
}  // namespace tgi::fourth_families_test
