// What versions of transformers write into config.json beside what the class says of itself
// (scripts/golden/check_saved_configs), and fields that are said twice.
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::saved_configs_test {
namespace {

ModelConfig read(const std::string& architecture, Json config) {
  config["architectures"] = {architecture};
  return load_config(config).config;
}

std::vector<std::vector<float>> rotations(const ModelConfig& model) {
  std::vector<std::vector<float>> out;
  for (const RopeSpec& rope : model.ropes) out.push_back(rope.inv_freq);
  return out;
}

}  // namespace

TEST_CASE("gpt-neox's rotation may be written under the common names too") {
  for (const char* architecture : {"GPTNeoXForCausalLM", "GPTNeoXJapaneseForCausalLM"}) {
    const Json own = {{"rotary_pct", 0.5}, {"rotary_emb_base", 500}};
    const Json both = {{"rotary_pct", 0.5},
                       {"rotary_emb_base", 500},
                       {"rope_theta", 500.0},
                       {"partial_rotary_factor", 0.5}};
    const auto expected = rotations(read(architecture, own));
    CHECK(rotations(read(architecture, both)) == expected);
    Json other = both;
    other["rope_theta"] = 10000.0;
    other["architectures"] = {architecture};
    CHECK_THAT(
        refusal(other, Code::kInvalidArgument),
        Catch::Contains("rope_theta: 10000, but rotary_emb_base is what counts, and it is 500"));
    // The class's default counts where it says nothing itself.
    const Json common = {{"architectures", {architecture}}, {"partial_rotary_factor", 0.5}};
    CHECK_THAT(refusal(common, Code::kInvalidArgument),
               Catch::Contains("partial_rotary_factor: 0.5, but rotary_pct is what counts"));
    CHECK(rotations(read(architecture, {{"rope_theta", 10000}})) ==
          rotations(read(architecture, Json::object())));
  }
}

TEST_CASE("fields that versions of transformers add are no reason to refuse a file") {
  struct Row {
    const char* architecture;
    Json added;
  };
  const Row rows[] = {
      {"Cohere2ForCausalLM", {{"_sliding_window_pattern", 4}}},
      {"GraniteMoeForCausalLM", {{"position_embedding_type", "rope"}}},
      {"GraniteMoeSharedForCausalLM", {{"position_embedding_type", "rope"}}},
      {"DeepseekV32ForCausalLM", {{"num_experts", 256}, {"n_routed_experts", 256}}},
      {"DbrxForCausalLM",
       {{"attn_config", {{"tie_word_embeddings", true}}},
        {"ffn_config", {{"tie_word_embeddings", true}}}}},
      {"MPTForCausalLM", {{"attn_config", {{"tie_word_embeddings", true}}}}},
      {"VipLlavaForConditionalGeneration", {{"_vocab_size", 32000}}},
  };
  for (const Row& row : rows) {
    INFO(row.architecture);
    CHECK(read(row.architecture, row.added).num_layers ==
          read(row.architecture, Json::object()).num_layers);
  }
}

TEST_CASE("a rotation beside those of the types of layers is nobody's") {
  const Json types = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 5e5}}},
                      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  Json with_more = types;
  with_more["rope_type"] = "default";
  with_more["rope_theta"] = 7.0;
  for (const char* architecture :
       {"LagunaForCausalLM", "MellumForCausalLM", "CohereCompassForCausalLM"}) {
    INFO(architecture);
    CHECK(rotations(read(architecture, {{"rope_parameters", with_more}})) ==
          rotations(read(architecture, {{"rope_parameters", types}})));
  }
  with_more["rope_speed"] = 1;
  CHECK_THAT(refusal({{"architectures", {"LagunaForCausalLM"}}, {"rope_parameters", with_more}},
                     Code::kInvalidArgument),
             Catch::Contains("rope_parameters.rope_speed"));
}

TEST_CASE("what text_config says may stand beside it once more, and nothing else") {
  const Json text = {{"model_type", "llama"}, {"intermediate_size", 96}, {"num_hidden_layers", 2}};
  Json config = {{"architectures", {"LlavaForConditionalGeneration"}}, {"text_config", text}};
  config["intermediate_size"] = 96;
  config["num_hidden_layers"] = 2;
  CHECK(load_config(config).config.intermediate_size == 96);
  config["intermediate_size"] = 128;
  CHECK_THAT(refusal(config, Code::kUnsupported), Catch::Contains("intermediate_size = 128"));
}

TEST_CASE("fuyu's files have old fields of the text model beside it, which its class passes over") {
  const Json text = {{"model_type", "persimmon"}, {"hidden_size", 256}, {"num_hidden_layers", 2}};
  Json config = {{"architectures", {"FuyuForCausalLM"}}, {"text_config", text}};
  config["hidden_size"] = 4096;
  config["rope_theta"] = 25000.0;
  config["_vocab_size"] = 262144;
  CHECK(load_config(config).config.hidden_size == 256);
  config["hidden_sizes"] = 4096;
  CHECK_THAT(refusal(config, Code::kUnsupported), Catch::Contains("hidden_sizes = 4096"));
}

TEST_CASE("a head of cohere 2 is as wide as the config says") {
  for (const char* architecture : {"Cohere2ForCausalLM", "CohereCompassForCausalLM"}) {
    const Json sizes = {{"hidden_size", 64}, {"num_attention_heads", 4}};
    CHECK(read(architecture, sizes).head_dim == 16);
    Json wide = sizes;
    wide["head_dim"] = 24;
    CHECK(read(architecture, wide).head_dim == 24);
  }
}

}  // namespace tgi::saved_configs_test
