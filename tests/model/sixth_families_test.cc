// What the readers of Kolibri, Ettin, Apertus 1.5 and Step make of their own fields, and what they
// refuse.
#include <cmath>
#include <string>

#include "engine/model/architecture.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::sixth_families_test {
namespace {

LoadedConfig load(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config);
}

std::string refused(const std::string& architecture, Json config, Code code) {
  config["architectures"] = {architecture};
  return refusal(config, code);
}

TEST_CASE("Kolibri rotates where there is a window, or everywhere where there is none") {
  const ModelConfig model = load("Kolibri1ForCausalLM", Json::object()).config;
  CHECK(model.layers[0].sliding_window == 513);
  CHECK(model.layers[0].rope == 0);
  CHECK(model.layers[4].sliding_window == 0);
  CHECK(model.layers[4].rope == kNoRope);
  CHECK(model.experts.route.score == RouterScore::kSigmoidOfChosen);
  CHECK_FALSE(model.experts.route.normalises);
  const Json full = {{"num_hidden_layers", 2},
                     {"layer_types", {"full_attention", "full_attention"}},
                     {"sliding_window", nullptr}};
  CHECK(load("Kolibri1ForCausalLM", full).config.layers[1].rope == 0);
  CHECK_THAT(refused("Kolibri1ForCausalLM", {{"sliding_window", nullptr}}, Code::kInvalidArgument),
             Catch::Contains("sliding_window is null"));
}

TEST_CASE("Ettin's window is half of local_attention, or what sliding_window says") {
  const std::string name = "ModernBertDecoderForCausalLM";
  const ModelConfig model = load(name, {{"local_attention", 100}}).config;
  CHECK(model.layers[0].sliding_window == 0);
  CHECK(model.layers[1].sliding_window == 50);
  CHECK(model.layers[3].sliding_window == 0);
  CHECK(load(name, {{"sliding_window", 7}}).config.layers[1].sliding_window == 7);
  CHECK_THAT(refused(name, {{"local_attention", 1}}, Code::kInvalidArgument),
             Catch::Contains("local_attention: expected 2 or more"));
  CHECK_THAT(refused(name, {{"classifier_activation", "silu"}}, Code::kUnsupported),
             Catch::Contains("known is gelu"));
}

TEST_CASE("what draws tokens is no part of a model that gives vectors") {
  LoadedConfig loaded = load("ModernBertDecoderForCausalLM", Json::object());
  CHECK(TensorTable(loaded).find(Role::kHeadDense) != nullptr);
  CHECK(TensorTable(loaded).find(Role::kLmHeadBias) != nullptr);
  make_embedder(loaded);
  CHECK(TensorTable(loaded).find(Role::kHeadDense) == nullptr);
  CHECK(TensorTable(loaded).find(Role::kHeadNorm) == nullptr);
  CHECK(TensorTable(loaded).find(Role::kLmHeadBias) == nullptr);
}

TEST_CASE("Apertus 1.5 draws from the first rows of its vocabulary") {
  const std::string name = "Apertus1p5TextForCausalLM";
  const LoadedConfig loaded = load(name, {{"vocab_size", 100}, {"output_vocab_size", 60}});
  CHECK(loaded.config.vocab_size == 60);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kTokenEmbedding)->rows == 100);
  CHECK(table.find(Role::kLmHead)->rows == 60);
  CHECK(load(name, Json::object()).config.vocab_size == 266752);
  CHECK_THAT(
      refused(name, {{"vocab_size", 100}, {"output_vocab_size", 101}}, Code::kInvalidArgument),
      Catch::Contains("101 tokens, but vocab_size is 100"));
  CHECK_THAT(
      refused(name, {{"vocab_size", 100}, {"output_vocab_size", 60}, {"tie_word_embeddings", true}},
              Code::kUnsupported),
      Catch::Contains("expected a head of its own"));
}

Json step(const Json& more) {
  Json out = {{"num_hidden_layers", 2},
              {"layer_types", {"full_attention", "sliding_attention"}},
              {"sliding_window", 64}};
  out.update(more);
  return out;
}

TEST_CASE("a limit of what Step's gates give is one of what they are made of") {
  const ModelConfig model =
      load("Step3p5ForCausalLM",
           step({{"swiglu_limits", {nullptr, 7.0}}, {"swiglu_limits_shared", {0.0, 16}}}))
          .config;
  CHECK(model.layers[0].expert_limits.limit == 0.0F);
  CHECK(model.layers[0].gate_limits.limit == 0.0F);
  const GateLimits limits = model.layers[1].expert_limits;
  CHECK(limits.up_limit == 7.0F);
  CHECK(std::abs(limits.limit / (1.0F + std::exp(-limits.limit)) - 7.0F) < 1e-5F);
  CHECK(model.layers[1].gate_limits.up_limit == 16.0F);
  CHECK_THAT(
      refused("Step3p5ForCausalLM", step({{"swiglu_limits", {7.0}}}), Code::kInvalidArgument),
      Catch::Contains("expected a list of 2 numbers"));
  CHECK_THAT(
      refused("Step3p5ForCausalLM", step({{"swiglu_limits", {7.0, -1.0}}}), Code::kInvalidArgument),
      Catch::Contains("entry 1 is -1.0"));
}

TEST_CASE("Step's lists may have entries of the layers that draft, whose tensors are left out") {
  const Json config = {{"num_hidden_layers", 2},
                       {"num_nextn_predict_layers", 1},
                       {"layer_types", {"full_attention", "sliding_attention", "full_attention"}},
                       {"sliding_window", 64},
                       {"rope_theta", {5e6, 1e4, 5e6}},
                       {"partial_rotary_factors", {0.5, 1.0, 0.5}},
                       {"swiglu_limits", {0, 0, 0}},
                       {"moe_layers_enum", "1,2"}};
  const ModelConfig model = load("Step3p5ForCausalLM", config).config;
  CHECK(model.layers_after_last == 1);
  CHECK(model.layers[0].mlp == MlpKind::kDense);
  CHECK(model.layers[1].mlp == MlpKind::kExperts);
  CHECK(model.ropes[static_cast<size_t>(model.layers[0].rope)].rotary_dim == 64);
  CHECK(model.ropes[static_cast<size_t>(model.layers[1].rope)].rotary_dim == 128);
}

TEST_CASE("heads of Step's layers with a window are counted apart") {
  const std::string name = "Step3p5ForCausalLM";
  for (const Json& said : {Json{{"num_sliding_attention_heads", 96}},
                           Json{{"attention_other_setting", {{"num_attention_heads", 96}}}},
                           Json{{"per_layer_config", {{"1", {{"num_attention_heads", 96}}}}}}}) {
    const ModelConfig model = load(name, step(said)).config;
    CHECK(model.layers[0].num_heads == 0);
    CHECK(model.layers[1].num_heads == 96);
  }
  CHECK_THAT(refused(name, step({{"num_sliding_attention_heads", 9}}), Code::kInvalidArgument),
             Catch::Contains("9 heads, expected a multiple of 8 KV heads"));
  CHECK_THAT(
      refused(name, step({{"attention_other_setting", {{"head_dim", 64}}}}), Code::kUnsupported),
      Catch::Contains("attention_other_setting.head_dim: 64 is not supported, expected 128"));
  CHECK_THAT(refused(name, step({{"per_layer_config", {{"7", {{"num_attention_heads", 96}}}}}}),
                     Code::kUnsupported),
             Catch::Contains("expected the number of a layer below 2"));
}

TEST_CASE("layers of one type that Step rotates in two ways are refused") {
  const Json config = {{"num_hidden_layers", 2}, {"rope_theta", {5e6, 1e4}}};
  CHECK_THAT(refused("Step3p5ForCausalLM", config, Code::kInvalidArgument),
             Catch::Contains("rope_theta: 10000.0 of layer 1 differs"));
  CHECK_THAT(refused("Step3p5ForCausalLM",
                     {{"rope_parameters", {{"rope_theta", 1e4}}}, {"num_hidden_layers", 2}},
                     Code::kInvalidArgument),
             Catch::Contains("expected an object for each type of layer"));
}

}  // namespace
}  // namespace tgi::sixth_families_test
