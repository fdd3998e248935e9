// What the readers of the families that came last make of their own fields, and what they refuse.
#include <string>

#include "engine/model/architecture.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::fifth_families_test {
namespace {

LoadedConfig load(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config);
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

TEST_CASE("layers of Llama 3.2 Vision that only see images do nothing, and have no tensors") {
  const LoadedConfig loaded = load("MllamaForCausalLM", {{"cross_attention_layers", {1, 45}}});
  const auto& layers = loaded.config.layers;
  CHECK(layers[0].has_attention);
  CHECK_FALSE(layers[1].has_attention);
  CHECK(layers[1].mlp == MlpKind::kNone);
  CHECK(layers[3].has_attention);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kAttentionNorm, 1) == nullptr);
  CHECK(table.find(Role::kDown, 1) == nullptr);
  CHECK(table.find(Role::kDown, 2) != nullptr);

  const auto by_default = load("MllamaForCausalLM", Json::object()).config.layers;
  CHECK_FALSE(by_default[3].has_attention);
  CHECK_FALSE(by_default[38].has_attention);
  CHECK(by_default[4].has_attention);

  const auto with = [](const Json& list) {
    return Json{{"num_hidden_layers", 2}, {"cross_attention_layers", list}};
  };
  CHECK_THAT(refused("MllamaForCausalLM", with({0, -1}), Code::kInvalidArgument),
             Catch::Contains("cross_attention_layers[1]: expected the number of a layer"));
  CHECK_THAT(refused("MllamaForCausalLM", with(3), Code::kInvalidArgument),
             Catch::Contains("expected a list of layers, got 3"));
  CHECK_THAT(refused("MllamaForCausalLM", with({1, 0}), Code::kInvalidArgument),
             Catch::Contains("has all of the 2 layers"));
}

TEST_CASE("the table of Llama 3.2 Vision has rows for images, its head is never tied to it") {
  const Json config = {{"vocab_size", 100}, {"tie_word_embeddings", true}};
  const LoadedConfig loaded = load("MllamaForCausalLM", config);
  CHECK_FALSE(loaded.config.tied_embeddings);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kTokenEmbedding)->rows == 108);
  CHECK(table.find(Role::kLmHead)->rows == 100);
}

}  // namespace
}  // namespace tgi::fifth_families_test
