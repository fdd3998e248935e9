// The text models of checkpoints that read pages or write down what is said: what their readers
// make of a config.json, and which values they refuse. What they compute is judged in
// tests/promises.
#include <string>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::page_families_test {
namespace {

Json around(const std::string& name, const Json& text) {
  return {{"architectures", {name}}, {"text_config", text}};
}

TEST_CASE("page readers' text models are found by text_config, or beside the other fields") {
  const Json flat = {{"architectures", {"PaddleOCRVLForConditionalGeneration"}},
                     {"model_type", "paddleocr_vl"},
                     {"num_hidden_layers", 3},
                     {"hidden_size", 64},
                     {"use_bias", true},
                     {"rope_is_neox_style", true},
                     {"rope_scaling", {{"type", "default"}, {"mrope_section", {16, 24, 24}}}},
                     {"tie_word_embeddings", false}};
  const LoadedConfig paddle = load_config(flat);
  CHECK(paddle.text->names.front() == "PaddleOCRTextModel");
  CHECK(paddle.config.num_layers == 3);
  CHECK(paddle.config.mlp_bias);
  CHECK_FALSE(paddle.config.ropes.front().interleaved);
  CHECK_FALSE(paddle.config.tied_embeddings);

  const Json scaling = {
      {"type", "xdrope"}, {"alpha", 1000.0}, {"xdrope_section", {16, 16, 16, 16}}};
  const Json text = {{"num_hidden_layers", 2}, {"head_dim", 128}, {"rope_scaling", scaling}};
  const ModelConfig hunyuan = load_config(around("HunYuanVLForConditionalGeneration", text)).config;
  CHECK(hunyuan.qk_norm_after_rope);
  CHECK(hunyuan.ropes.front().base > 1e7F);  // stretched once
  CHECK(hunyuan.ropes.front().dynamic_factor == 1.0F);

  const ModelConfig granite =
      load_config(around("GraniteDoclingForConditionalGeneration", Json::object())).config;
  CHECK(granite.embedding_multiplier == 12.0F);
  CHECK(granite.logit_scale == 0.25F);
  CHECK(load_config(around("Granite4VisionForConditionalGeneration",
                           {{"model_type", "granite4_vision_text"}}))
            .config.embedding_multiplier == 1.0F);
}

TEST_CASE("DeepSeek-OCR 2 has experts where mlp_layer_types says, and heads of the hidden size") {
  const Json text = {{"num_hidden_layers", 3},
                     {"hidden_size", 64},
                     {"num_attention_heads", 4},
                     {"head_dim", 99},
                     {"mlp_layer_types", {"dense", "sparse", "dense"}}};
  const ModelConfig model =
      load_config(around("DeepseekOcr2ForConditionalGeneration", text)).config;
  CHECK(model.head_dim == 16);
  CHECK(model.layers[0].mlp == MlpKind::kDense);
  CHECK(model.layers[1].mlp == MlpKind::kExperts);
  CHECK_FALSE(model.experts.has_choice_bias);
  CHECK_FALSE(model.experts.route.normalises);
  Json bad = text;
  bad["topk_method"] = "noaux_tc";
  CHECK_THAT(refusal(around("DeepseekOcr2ForConditionalGeneration", bad), Code::kUnsupported),
             Catch::Contains("topk_method: 'noaux_tc' is not supported; known are greedy"));
}

TEST_CASE("Molmo 2 scales the rotation of the layers that it names, and norms as it says") {
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}};
  Json text = {{"num_hidden_layers", 3}, {"rope_scaling", yarn}, {"rope_scaling_layers", {0, 2}}};
  const std::string name = "Molmo2ForConditionalGeneration";
  const ModelConfig model = load_config(around(name, text)).config;
  REQUIRE(model.ropes.size() == 2);
  CHECK(model.layers[0].rope == model.layers[2].rope);
  CHECK(model.ropes[static_cast<size_t>(model.layers[0].rope)].attention_factor != 1.0F);
  CHECK(model.ropes[static_cast<size_t>(model.layers[1].rope)].attention_factor == 1.0F);
  CHECK(model.qk_norm == QkNorm::kHead);
  text["rope_scaling_layers"] = {0, 1, 2};
  text["qk_norm_type"] = "olmo";
  text["norm_after"] = true;
  CHECK(load_config(around(name, text)).config.ropes.size() == 1);
  CHECK(load_config(around(name, text)).config.qk_norm == QkNorm::kRow);
  CHECK(load_config(around(name, text)).config.has_post_norms);
  text["rope_scaling_layers"] = {3};
  CHECK_THAT(refusal(around(name, text), Code::kInvalidArgument),
             Catch::Contains("rope_scaling_layers[0]: expected a layer from 0 to 2, got 3"));
  text["rope_scaling_layers"] = 3;
  CHECK_THAT(refusal(around(name, text), Code::kInvalidArgument),
             Catch::Contains("rope_scaling_layers: expected a list of layers, got 3"));
  text["rope_scaling_layers"] = nullptr;
  text["qk_norm_type"] = "rms";
  CHECK_THAT(refusal(around(name, text), Code::kUnsupported),
             Catch::Contains("qk_norm_type: 'rms' is not supported; known are qwen3, olmo"));
}

TEST_CASE("files of transformers 5.24 call layers with a state linear attention") {
  Json config = {{"architectures", {"GraniteMoeHybridForCausalLM"}},
                 {"num_hidden_layers", 2},
                 {"layer_types", {"linear_attention", "full_attention"}}};
  const ModelConfig later = load_config(config).config;
  config["layer_types"] = {"mamba", "attention"};
  const ModelConfig earlier = load_config(config).config;
  for (const ModelConfig* model : {&later, &earlier}) {
    CHECK(model->layers[0].has_state);
    CHECK_FALSE(model->layers[0].has_attention);
    CHECK(model->layers[1].has_attention);
  }
}

}  // namespace
}  // namespace tgi::page_families_test
