#include "engine/model/rope.h"

#include <cmath>

#include "base/error.h"
#include "base/files/file_source.h"
#include "tests/catch.h"
#include "tests/model/model_files.h"
#include "tests/shared_data.h"

namespace tgi::rope_test {
namespace {

Json rope_config(const std::string& key, const Json& rope) {
  Json config = small_llama();
  config["max_position_embeddings"] = 100;
  config[key] = rope;
  return config;
}

ModelConfig read(const Json& config) {
  return load_config(config).config;
}

std::string refusal_of_rope(const Json& rope, Code code) {
  INFO(rope.dump());
  try {
    read(rope_config("rope_scaling", rope));
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("was accepted");
  return "";
}

TEST_CASE("frequencies are those of transformers") {
  const auto folder = open_folder(std::string(TGI_SOURCE_DIR) + "/tests/golden/models");
  const Json golden = parse_json(folder->require_text("rope.json"));
  REQUIRE(golden.at("cases").size() > 20);
  for (const Json& item : golden.at("cases")) {
    INFO(item.at("config").dump());
    Json config = item.at("config");
    config["architectures"] = {"LlamaForCausalLM"};
    const RopeSpec rope = read(config).ropes.at(0);
    const auto& expected = item.at("inv_freq");
    REQUIRE(rope.inv_freq.size() == expected.size());
    for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
      // powf differs by a unit in the last place between math libraries, and blending adds one.
      CHECK(rope.inv_freq[i] == Approx(expected[i].get<double>()).epsilon(5e-7).margin(0));
    }
    CHECK(rope.attention_factor == Approx(item.at("attention_factor").get<double>()).epsilon(1e-7));
  }
}

TEST_CASE("both spellings mean the same") {
  Json old_way = small_llama();
  old_way["rope_theta"] = 5e5;
  old_way["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  Json new_way = small_llama();
  new_way["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 5e5}};
  CHECK(read(old_way).ropes.at(0).inv_freq == read(new_way).ropes.at(0).inv_freq);
  CHECK(read(old_way).ropes.at(0).base == 5e5F);
  Json per_layer = small_llama();
  per_layer["rope_parameters"] = {{"full_attention", new_way["rope_parameters"]},
                                  {"sliding_attention", new_way["rope_parameters"]}};
  CHECK(read(per_layer).ropes.at(0).inv_freq == read(new_way).ropes.at(0).inv_freq);
  per_layer["rope_parameters"]["sliding_attention"]["rope_theta"] = 1e4;
  CHECK_THROWS_WITH(read(per_layer), Catch::Contains("differs between layer types"));
  per_layer["rope_parameters"]["sliding_attention"] = nullptr;
  CHECK_THROWS_WITH(read(per_layer), Catch::Contains("rope_parameters.sliding_attention"));
  per_layer["rope_parameters"].erase("sliding_attention");
  per_layer["rope_parameters"]["chunked_attention"] = Json::object();
  CHECK_THROWS_WITH(read(per_layer), Catch::Contains("rope_parameters.chunked_attention"));
}

TEST_CASE("rope parameters that nobody knows, or that contradict each other, are refused") {
  const Json linear = {{"rope_type", "linear"}, {"factor", 2.0}};
  Json spiral = linear;
  spiral["twist"] = 3;
  CHECK_THAT(refusal_of_rope(spiral, Code::kUnsupported),
             Catch::Contains("rope_scaling.twist = 3"));
  spiral["twist"] = nullptr;
  spiral["beta_fast"] = 32;
  CHECK(read(rope_config("rope_scaling", spiral)).max_positions == 200);
  Json both = rope_config("rope_scaling", linear);
  both["rope_parameters"] = linear;
  CHECK(read(both).max_positions == 200);
  both["rope_parameters"]["factor"] = 3.0;
  CHECK_THROWS_WITH(read(both), Catch::Contains("rope_parameters: differs from rope_scaling"));
}

TEST_CASE("scaling widens the context") {
  CHECK(read(rope_config("rope_theta", 1e4)).max_positions == 100);
  CHECK(read(rope_config("rope_scaling", {{"type", "linear"}, {"factor", 2.5}})).max_positions ==
        250);
  CHECK(read(rope_config("rope_scaling", {{"type", "yarn"}, {"factor", 4.0}})).max_positions ==
        400);
  CHECK(read(rope_config(
                 "rope_scaling",
                 {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 20}}))
            .max_positions == 100);
  const ModelConfig dynamic =
      read(rope_config("rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}));
  CHECK(dynamic.max_positions == 200);
  CHECK(dynamic.ropes.at(0).dynamic_original_positions == 100);
  CHECK(dynamic.ropes.at(0).dynamic_factor == 2.0F);
}

TEST_CASE("senseless rope parameters are refused by name") {
  CHECK_THAT(
      refusal_of_rope({{"type", "spiral"}, {"factor", 2}}, Code::kUnsupported),
      Catch::Contains("'spiral'") && Catch::Contains("default, linear, dynamic, llama3, yarn"));
  CHECK_THAT(refusal_of_rope({{"type", "linear"}}, Code::kInvalidArgument),
             Catch::Contains("rope_scaling.factor: missing"));
  for (const Json& factor : {Json(0.0), Json(-2.0), Json(0.5), Json("2")}) {
    CHECK_THAT(refusal_of_rope({{"type", "dynamic"}, {"factor", factor}}, Code::kInvalidArgument),
               Catch::Contains("rope_scaling.factor"));
  }
  CHECK_THAT(refusal_of_rope({{"type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 1.0}},
                             Code::kInvalidArgument),
             Catch::Contains("high_freq_factor"));
  CHECK_THAT(refusal_of_rope({{"type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 4.0},
                              {"high_freq_factor", 3.5}},
                             Code::kInvalidArgument),
             Catch::Contains("high_freq_factor"));
  CHECK_THAT(
      refusal_of_rope({{"type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 0}},
                      Code::kInvalidArgument),
      Catch::Contains("original_max_position_embeddings"));
  CHECK_THAT(
      refusal_of_rope({{"type", "default"}, {"partial_rotary_factor", 0.5}}, Code::kUnsupported),
      Catch::Contains("partial_rotary_factor"));
  CHECK_THROWS_WITH(read(rope_config("rope_theta", 0)), Catch::Contains("rope_theta"));
  CHECK_THROWS_WITH(read(rope_config("rope_theta", -1e4)), Catch::Contains("rope_theta"));
  CHECK_THROWS_WITH(read(rope_config("rope_scaling", 7)), Catch::Contains("rope_scaling"));
}

}  // namespace
}  // namespace tgi::rope_test
