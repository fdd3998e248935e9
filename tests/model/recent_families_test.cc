// What the readers of Granite with windows, GPT-Neo, Cohere 2 with experts, Hunyuan 3, Mellum,
// Laguna and LFM3 make of their own fields, and what they refuse.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::recent_families_test {
namespace {

ModelConfig read(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config).config;
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

std::vector<int32_t> windows_of(const ModelConfig& model) {
  std::vector<int32_t> out;
  for (const LayerPlan& layer : model.layers) out.push_back(layer.sliding_window);
  return out;
}

using Windows = std::vector<int32_t>;

TEST_CASE(
    "a granite with windows sees everything in every fourth layer, unless it says otherwise") {
  const Json five = {{"num_hidden_layers", 5}, {"sliding_window", 16}};
  CHECK(windows_of(read("GraniteSWAForCausalLM", five)) == Windows{0, 16, 16, 16, 0});
  Json said = five;
  said["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "full_attention",
                         "sliding_attention"};
  CHECK(windows_of(read("GraniteMoeSWAForCausalLM", said)) == Windows{16, 0, 0, 0, 16});
}

TEST_CASE("each layer of a granite is rotated by its base, and by none where that is 0") {
  Json config = {{"num_hidden_layers", 4}, {"layer_rope_theta", {5000.0, 0, 20000, 5000}}};
  const ModelConfig model = read("GraniteSWAForCausalLM", config);
  CHECK(model.ropes.size() == 2);
  CHECK(model.layers[0].rope == model.layers[3].rope);
  CHECK(model.layers[0].rope != model.layers[2].rope);
  CHECK(model.layers[1].rope == kNoRope);
  config["layer_rope_theta"] = {5000.0, 1};
  CHECK_THAT(refused("GraniteSWAForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("layer_rope_theta: expected a list of 4 numbers, one per layer") &&
                 Catch::Contains("2 entries"));
  config["layer_rope_theta"] = 5;
  CHECK_THAT(refused("GraniteSWAForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("got number"));
  config["layer_rope_theta"] = {1, 2, -3, 4};
  CHECK_THAT(refused("GraniteSWAForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("layer_rope_theta: entry 2: expected a number of 0 or more, got -3"));
}

TEST_CASE("runs of GPT-Neo's kinds of layers are spelled out, and have to be as many as layers") {
  Json config = {{"num_layers", 5},
                 {"window_size", 7},
                 {"attention_types", {{{"global", "local"}, 2}, {{"local"}, 1}}}};
  CHECK(windows_of(read("GPTNeoForCausalLM", config)) == Windows{0, 7, 0, 7, 7});
  config["attention_layers"] = {"global", "local", "global", "local", "local"};
  CHECK(windows_of(read("GPTNeoForCausalLM", config)) == Windows{0, 7, 0, 7, 7});
  config["attention_layers"][0] = "local";
  CHECK_THAT(refused("GPTNeoForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("attention_types: says other layers than attention_layers"));
  config.erase("attention_layers");
  config["num_layers"] = 6;
  CHECK_THAT(refused("GPTNeoForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("attention_types: expected as many as the 6 layers, got 5"));
  config["attention_types"] = {{{"global", "far"}, 3}};
  CHECK_THAT(refused("GPTNeoForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("expected global or local, got \"far\""));
  config["attention_types"] = {{{"global"}, "3"}};
  CHECK_THAT(refused("GPTNeoForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("attention_types: expected runs like"));
  config["attention_types"] = {{{"global"}, 1000000000000}};
  CHECK_THAT(refused("GPTNeoForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("or more"));
}

TEST_CASE("dense layers of Cohere's experts have windows of their own pattern, and a rotation") {
  const Json config = {{"num_hidden_layers", 6},
                       {"sliding_window", 16},
                       {"sliding_window_pattern", 2},
                       {"first_k_dense_replace", 3}};
  ModelConfig model = read("Cohere2MoeForCausalLM", config);
  CHECK(windows_of(model) == Windows{0, 0, 0, 16, 0, 16});
  const auto rotated = [](const ModelConfig& from) {
    std::vector<bool> out;
    for (const LayerPlan& layer : from.layers) out.push_back(layer.rope != kNoRope);
    return out;
  };
  CHECK(rotated(model) == std::vector{true, true, true, true, false, true});
  Json other = config;
  other["prefix_dense_sliding_window_pattern"] = 2;
  model = read("Cohere2MoeForCausalLM", other);
  CHECK(windows_of(model) == Windows{16, 0, 16, 16, 0, 16});
  CHECK(rotated(model) == std::vector{true, false, true, true, false, true});
  other["expert_selection_fn"] = "argmax";
  CHECK_THAT(refused("Cohere2MoeForCausalLM", other, Code::kUnsupported),
             Catch::Contains("expert_selection_fn: expected softmax or sigmoid, got 'argmax'"));
  other["expert_selection_fn"] = "sigmoid";
  other["num_shared_experts"] = -1;
  CHECK_THAT(refused("Cohere2MoeForCausalLM", other, Code::kInvalidArgument),
             Catch::Contains("num_shared_experts"));
}

TEST_CASE("a Hunyuan 3 is dense in its first layer") {
  const ModelConfig model = read("HYV3ForCausalLM", {{"num_hidden_layers", 3}});
  CHECK(model.layers[0].mlp == MlpKind::kDense);
  CHECK(model.layers[1].mlp == MlpKind::kExperts);
  CHECK(model.experts.shared_intermediate_size == 1536);
  CHECK(read("HYV3ForCausalLM", {{"mlp_bias", true}}).mlp_bias);
  CHECK_THAT(refused("HYV3ForCausalLM", {{"num_shared_experts", -1}}, Code::kInvalidArgument),
             Catch::Contains("num_shared_experts"));
}

TEST_CASE("a Mellum without layer_types has no windows, and scales its rotation by kind of layer") {
  CHECK(windows_of(read("MellumForCausalLM", {{"num_hidden_layers", 2}})) == Windows{0, 0});
  const ModelConfig model =
      read("MellumForCausalLM",
           {{"num_hidden_layers", 2}, {"layer_types", {"sliding_attention", "full_attention"}}});
  CHECK(windows_of(model) == Windows{1024, 0});
  const RopeSpec& near = model.ropes[static_cast<size_t>(model.layers[0].rope)];
  const RopeSpec& far = model.ropes[static_cast<size_t>(model.layers[1].rope)];
  CHECK(near.inv_freq.back() > far.inv_freq.back());
}

TEST_CASE("a Laguna counts heads layer by layer, of which a number or each column has a gate") {
  const Json two = {{"num_hidden_layers", 2}};
  const ModelConfig plain = read("LagunaForCausalLM", two);
  CHECK(plain.gates_heads);
  CHECK(plain.layers[0].mlp == MlpKind::kDense);
  CHECK(plain.layers[1].mlp == MlpKind::kExperts);
  CHECK(num_heads_of(plain, 1) == 48);
  Json said = two;
  said["gating"] = "per-element";
  said["num_attention_heads_per_layer"] = {48, 64};
  const ModelConfig model = read("LagunaForCausalLM", said);
  CHECK_FALSE(model.gates_heads);
  CHECK(num_heads_of(model, 0) == 48);
  CHECK(num_heads_of(model, 1) == 64);
  CHECK(most_heads(model) == 64);
  const auto with_heads = [&](const Json& heads) {
    said["num_attention_heads_per_layer"] = heads;
    return refused("LagunaForCausalLM", said, Code::kInvalidArgument);
  };
  CHECK_THAT(with_heads(Json::array({48})),
             Catch::Contains("expected a list of 2 numbers, one per layer, got 1"));
  CHECK_THAT(with_heads({48, 12}), Catch::Contains("entry 1 is 12, expected a multiple of 8"));
  CHECK_THAT(with_heads(7), Catch::Contains("got 7"));
}

TEST_CASE("an LFM3 has three kinds of layers, by a pattern or a list") {
  const ModelConfig model = read("Lfm3ForCausalLM", {{"num_hidden_layers", 7}});
  CHECK(windows_of(model) == Windows{0, 0, 0, 0, 256, 0, 0});
  CHECK(count_layers(model, &LayerPlan::has_state) == 4);
  CHECK(model.layers[4].rope != model.layers[6].rope);
  Json said = {{"num_hidden_layers", 2}, {"layer_types", {"conv", "mamba"}}};
  CHECK_THAT(refused("Lfm3ForCausalLM", said, Code::kUnsupported),
             Catch::Contains("layer_types[1]: 'mamba' is not supported; known are conv"));
  said["layer_types"] = {"conv"};
  CHECK_THAT(refused("Lfm3ForCausalLM", said, Code::kInvalidArgument),
             Catch::Contains("layer_types: expected 2 entries, one per layer, got 1"));
}

}  // namespace
}  // namespace tgi::recent_families_test
