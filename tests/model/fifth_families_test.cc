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

TEST_CASE("what a text_config of Voxtral or GLM-ASR leaves out is as their class has it") {
  const Json text = {{"text_config", {{"hidden_size", 1024}, {"num_attention_heads", 8}}}};
  const ModelConfig voxtral = load("VoxtralForConditionalGeneration", text).config;
  CHECK(voxtral.hidden_size == 1024);
  CHECK(voxtral.num_layers == 30);
  CHECK(voxtral.head_dim == 128);
  CHECK(voxtral.ropes.front().base == 1e8F);
  const ModelConfig glm = load("GlmAsrForConditionalGeneration", text).config;
  CHECK(glm.num_layers == 28);
  CHECK(glm.vocab_size == 59264);
  // Of others the family's own defaults count.
  const Json other = {{"text_config", {{"num_key_value_heads", 8}}}};
  CHECK(load("Qwen3ASRForConditionalGeneration", other).config.num_layers == 32);
}

TEST_CASE("classes with a head of their own are not tied, whatever the config says") {
  for (const char* name :
       {"Molmo2ForConditionalGeneration", "VibeVoiceAsrForConditionalGeneration"}) {
    INFO(name);
    const Json both = {{"tie_word_embeddings", true},
                       {"text_config", {{"tie_word_embeddings", true}}}};
    CHECK_FALSE(load(name, both).config.tied_embeddings);
  }
}

TEST_CASE("a family takes those types of rotations that its class takes") {
  const auto scaled = [](const Json& scaling) { return Json{{"rope_scaling", scaling}}; };
  const Json xdrope = {{"type", "xdrope"}, {"alpha", 1000.0}};
  CHECK_THAT(refused("LlamaForCausalLM", scaled({{"type", "xdrope"}, {"factor", 2.0}}),
                     Code::kUnsupported),
             Catch::Contains("'xdrope' is not supported") && !Catch::Contains("known are xdrope"));
  CHECK(load("HunYuanVLTextModel", scaled(xdrope)).config.ropes.front().base > 1e6F);
  CHECK_THAT(
      refused("Phi3ForCausalLM", scaled({{"type", "linear"}, {"factor", 2.0}}), Code::kUnsupported),
      Catch::Contains("'linear' is not supported; known are default, longrope, su"));
}

TEST_CASE("Cohere Compass rotates the types of layers that its config has a rotation for") {
  const Json types = {"sliding_attention", "full_attention"};
  const auto with = [&](const Json& ropes) {
    return Json{{"num_hidden_layers", 2}, {"layer_types", types}, {"rope_parameters", ropes}};
  };
  const Json near = {{"rope_theta", 5e4}};
  ModelConfig model =
      load("CohereCompassForCausalLM",
           with({{"rope_theta", 1e3}, {"sliding_attention", near}, {"full_attention", nullptr}}))
          .config;
  REQUIRE(model.ropes.size() == 1);
  CHECK(model.ropes.front().base == 5e4F);
  CHECK(model.layers[0].rope == 0);
  CHECK(model.layers[0].sliding_window == 4096);
  CHECK(model.layers[1].rope == kNoRope);
  CHECK(model.layers[1].sliding_window == 0);
  CHECK(model.logit_scale == 1.0F);

  model = load("CohereCompassForCausalLM",
               with({{"sliding_attention", near}, {"full_attention", {{"rope_theta", 1e6}}}}))
              .config;
  CHECK(model.ropes[static_cast<size_t>(model.layers[0].rope)].base == 5e4F);
  CHECK(model.ropes[static_cast<size_t>(model.layers[1].rope)].base == 1e6F);

  CHECK(load("CohereCompassForCausalLM", Json::object()).config.layers[0].sliding_window == 0);
  CHECK_THAT(refused("CohereCompassForCausalLM", with({{"sliding_attention", near}}),
                     Code::kInvalidArgument),
             Catch::Contains("rope_parameters.full_attention: expected a rotation, or null"));
  CHECK_THAT(
      refused("CohereCompassForCausalLM",
              with({{"sliding_attention", near}, {"full_attention", near}, {"chunked", near}}),
              Code::kInvalidArgument),
      Catch::Contains("chunked"));
}

TEST_CASE("kinds of layers that are said twice have to be the same") {
  const Json words = {"mamba", "mlp"};
  CHECK(load("NemotronHForCausalLM",
             {{"hybrid_override_pattern", "M-"}, {"layers_block_type", words}})
            .config.num_layers == 2);
  CHECK_THAT(refused("NemotronHForCausalLM",
                     {{"hybrid_override_pattern", "M*"}, {"layers_block_type", words}},
                     Code::kInvalidArgument),
             Catch::Contains("layers_block_type: says other layers than"));

  const Json bamba = {{"num_hidden_layers", 2}, {"attn_layer_indices", {1}}};
  const auto with_types = [](Json config, const Json& types) {
    config["layer_types"] = types;
    return config;
  };
  load("BambaForCausalLM", with_types(bamba, {"linear_attention", "full_attention"}));
  CHECK_THAT(
      refused("BambaForCausalLM", with_types(bamba, {"mamba", "mamba"}), Code::kInvalidArgument),
      Catch::Contains("layer_types[1]: 'mamba', but by the other fields the layer is of"));
  const Json jamba = {{"num_hidden_layers", 2}, {"attn_layer_period", 2}, {"attn_layer_offset", 0}};
  load("JambaForCausalLM", with_types(jamba, {"attention", "mamba"}));
  CHECK_THAT(refused("JambaForCausalLM", with_types(jamba, {"mamba", "attention"}),
                     Code::kInvalidArgument),
             Catch::Contains("layer_types[0]: 'mamba'"));
  CHECK_THAT(refused("JambaForCausalLM", with_types(jamba, {"mamba"}), Code::kInvalidArgument),
             Catch::Contains("expected 2 entries, one per layer, got 1"));
}

TEST_CASE("rotated columns of MiniMax M2 and their part of a head have to agree") {
  const Json agree = {{"rotary_dim", 64}, {"partial_rotary_factor", 0.5}};
  CHECK(load("MiniMaxM2ForCausalLM", agree).config.ropes.front().rotary_dim == 64);
  CHECK_THAT(
      refused("MiniMaxM2ForCausalLM",
              {{"rotary_dim", 64},
               {"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 1.0}}}},
              Code::kInvalidArgument),
      Catch::Contains("1 of a head of 128 are 128 columns, but rotary_dim is 64"));
}

TEST_CASE("what classes do not read of rotations is refused by name") {
  CHECK_THAT(refused("BambaForCausalLM", {{"partial_rotary_factor", 0.75}}, Code::kUnsupported),
             Catch::Contains("partial_rotary_factor: 0.75 is not supported"));
  CHECK_THAT(refused("Cohere2MoeForCausalLM",
                     {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}, Code::kUnsupported),
             Catch::Contains("rope_scaling: "));
}

TEST_CASE("Emu3's text model is Llama's block, Fuyu's is Persimmon's whose fields lie beside it") {
  CHECK(load("Emu3ForConditionalGeneration", Json::object()).config.ropes.front().base == 1e6F);
  const ModelConfig fuyu = load("FuyuForCausalLM", {{"num_hidden_layers", 3},
                                                    {"hidden_size", 128},
                                                    {"num_attention_heads", 4},
                                                    {"patch_size", 30}})
                               .config;
  CHECK(fuyu.num_layers == 3);
  CHECK(fuyu.ropes.front().rotary_dim == 16);
  CHECK_THAT(refused("FuyuForCausalLM", {{"text_model_type", "llama"}}, Code::kUnsupported),
             Catch::Contains("text_model_type"));
}

TEST_CASE("what the first GPT calls gelu is its approximation, and its norms are behind branches") {
  const ModelConfig model = load("OpenAIGPTLMHeadModel", Json::object()).config;
  CHECK(model.activation == Activation::kGeluTanh);
  CHECK(model.residual_after_norm);
  CHECK(model.intermediate_size == 4 * 768);
  CHECK_THAT(refused("OpenAIGPTLMHeadModel", {{"afn", "gelu_new"}}, Code::kUnsupported),
             Catch::Contains("afn: 'gelu_new' is not supported"));
  CHECK_THAT(refused("OpenAIGPTLMHeadModel", {{"n_inner", 7}}, Code::kUnsupported),
             Catch::Contains("n_inner"));
}

}  // namespace
}  // namespace tgi::fifth_families_test
