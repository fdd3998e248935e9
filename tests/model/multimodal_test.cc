// Checkpoints of which the text model is read, and Llama 4, which is published so.
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::multimodal_test {
namespace {

Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

TEST_CASE("a multimodal checkpoint is of the family that its text_config names") {
  const auto text_of = [](const Json& text) {
    return load_config({{"architectures", {"Mistral3ForConditionalGeneration"}},
                        {"text_config", text},
                        {"dtype", "float16"}});
  };
  const LoadedConfig mistral = text_of({{"num_hidden_layers", 3}});
  CHECK(mistral.text->names.front() == "MistralForCausalLM");
  CHECK(mistral.config.architecture == "Mistral3ForConditionalGeneration");
  CHECK(mistral.config.num_layers == 3);
  CHECK(mistral.config.checkpoint_dtype == DType::kF16);
  CHECK(text_of({{"model_type", "ministral3"}}).text->names.front() == "Ministral3ForCausalLM");
  CHECK(has_latents(text_of({{"model_type", "mistral4"}}).config));
  // Without any the class has a model of its own in mind.
  const LoadedConfig none = load_config({{"architectures", {"Mistral3ForConditionalGeneration"}}});
  CHECK(none.config.hidden_size == 5120);
  CHECK(none.config.num_layers == 40);
}

TEST_CASE("old multimodal files have the text model's fields beside the others") {
  const Json config = {{"architectures", {"Qwen2_5_VLForConditionalGeneration"}},
                       {"model_type", "qwen2_5_vl"},
                       {"num_hidden_layers", 3},
                       {"hidden_size", 640},
                       {"num_attention_heads", 8},
                       {"num_key_value_heads", 2},
                       {"tie_word_embeddings", true},
                       {"rope_scaling", {{"type", "mrope"}, {"mrope_section", {16, 24, 24}}}},
                       {"vision_config", {{"depth", 2}}}};
  const LoadedConfig model = load_config(config);
  CHECK(model.config.num_layers == 3);
  CHECK(model.config.hidden_size == 640);
  CHECK(model.config.tied_embeddings);
  CHECK_THAT(refusal(with(config, "logit_swizzle", 1), Code::kUnsupported),
             Catch::Contains("logit_swizzle = 1"));
}

TEST_CASE("the text model's part may say how the checkpoint is quantised") {
  const Json fp8 = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  const Json text = {{"num_hidden_layers", 3}, {"quantization_config", fp8}};
  const Json config = {{"architectures", {"Mistral3ForConditionalGeneration"}},
                       {"text_config", text}};
  CHECK(load_config(config).weight_format->name == "fp8");
  CHECK(load_config(with(config, "quantization_config", fp8)).weight_format->name == "fp8");
  CHECK_THAT(refusal(with(config, "quantization_config", {{"quant_method", "gptq"}, {"bits", 4}}),
                     Code::kInvalidArgument),
             Catch::Contains("text_config.quantization_config: differs"));
  // In the file of one part of several, and under an older name of text_config.
  const Json thinker = {{"architectures", {"Qwen2_5OmniModel"}},
                        {"model_type", "qwen2_5_omni"},
                        {"thinker_config", {{"text_config", text}}}};
  CHECK(load_config(thinker).weight_format->name == "fp8");
}

TEST_CASE("of a checkpoint of several parts the one that thinks is read") {
  const Json text = {{"num_hidden_layers", 3}, {"hidden_size", 280}};
  Json config = {{"architectures", {"Qwen2_5OmniModel"}},
                 {"model_type", "qwen2_5_omni"},
                 {"enable_audio_output", true},
                 {"talker_config", {{"hidden_size", 896}}},
                 {"thinker_config",
                  {{"architectures", {"Qwen2OmniNaViTThinkerForConditionalGeneration"}},
                   {"model_type", "qwen2_5_omni_thinker"},
                   {"text_config", text}}}};
  const LoadedConfig model = load_config(config);
  CHECK(model.text->names.front() == "Qwen2_5OmniTextModel");
  CHECK(model.config.num_layers == 3);
  CHECK(model.config.hidden_size == 280);
  CHECK(model.architecture->prefix == "thinker.");
  config["thinker_config"]["text_config"]["logit_swizzle"] = 1;
  CHECK_THAT(refusal(config, Code::kUnsupported), Catch::Contains("logit_swizzle = 1"));
  config["thinker_config"] = 3;
  CHECK_THAT(refusal(config, Code::kInvalidArgument), Catch::Contains("thinker_config"));
}

LoadedConfig load_beside_tensor(const Json& config, const std::string& name) {
  std::map<std::string, std::string> files = {
      {"config.json", config.dump()},
      {"model.safetensors.index.json", Json{{"weight_map", {{name, "1"}}}}.dump()}};
  return load_model_config(MemorySource(std::move(files)));
}

TEST_CASE(
    "the stored head decides where a multimodal file says twice, or not, whether it is tied") {
  Json config = {{"architectures", {"LlavaForConditionalGeneration"}},
                 {"tie_word_embeddings", false},
                 {"text_config", {{"model_type", "qwen2"}, {"tie_word_embeddings", true}}}};
  const char* const head = "language_model.lm_head.weight";
  CHECK_FALSE(load_beside_tensor(config, head).config.tied_embeddings);
  CHECK(load_beside_tensor(config, "model.norm.weight").config.tied_embeddings);
  config["tie_word_embeddings"] = true;
  CHECK(load_beside_tensor(config, head).config.tied_embeddings);
  config = {{"architectures", {"Mistral3ForConditionalGeneration"}},
            {"text_config", Json::object()}};
  CHECK_FALSE(load_beside_tensor(config, head).config.tied_embeddings);
  CHECK(load_beside_tensor(config, "model.norm.weight").config.tied_embeddings);
}

TEST_CASE("experts are read as the checkpoint stores them, one behind the other or apart") {
  const Json config = {{"architectures", {"Qwen3_5MoeForCausalLM"}}};
  const LoadedConfig apart =
      load_beside_tensor(config, "model.layers.0.mlp.experts.0.up_proj.weight");
  const LoadedConfig stacked =
      load_beside_tensor(config, "model.layers.0.mlp.experts.gate_up_proj");
  CHECK(apart.has_separate_experts);
  CHECK_FALSE(stacked.has_separate_experts);
  CHECK(count_parameters(apart) == count_parameters(stacked));
}

TEST_CASE("llama 4 has chunks where it rotates, and scaled queries where it does not") {
  const Json config = {{"architectures", {"Llama4ForCausalLM"}},
                       {"num_hidden_layers", 8},
                       {"attention_chunk_size", 100},
                       {"interleave_moe_layer_step", 2},
                       {"no_rope_layers", Json::array()}};
  const ModelConfig model = load_config(config).config;
  for (int32_t i = 0; i < 8; ++i) {
    const LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    const bool rotates = i % 4 != 3;
    CHECK(layer.attention_chunk == (rotates ? 100 : 0));
    CHECK((layer.rope != kNoRope) == rotates);
    CHECK(layer.divides_qk == rotates);
    CHECK(layer.query_scale == (rotates ? PositionScale{} : PositionScale{0.1F, 8192, 1}));
    CHECK((layer.mlp == MlpKind::kExperts) == (i % 2 == 1));
  }
  const ModelConfig plain =
      load_config(with(with(config, "use_qk_norm", false), "attn_temperature_tuning", 0)).config;
  CHECK(count_layers(plain, &LayerPlan::divides_qk) == 0);
  CHECK(plain.layers[3].query_scale == PositionScale{});
  CHECK(load_config(with(config, "moe_layers", {0})).config.layers[1].mlp == MlpKind::kDense);
  CHECK_THAT(refusal(with(config, "moe_layers", {8}), Code::kInvalidArgument),
             Catch::Contains("moe_layers: names layer 8, but there are 8"));
  CHECK_THAT(refusal(with(config, "attention_chunk_size", 0), Code::kInvalidArgument),
             Catch::Contains("attention_chunk_size: expected 1 to"));
}

}  // namespace
}  // namespace tgi::multimodal_test
