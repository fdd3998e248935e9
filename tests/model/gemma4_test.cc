// Layers whose heads differ and that share keys and values, as Gemma 4's config.json says it.
#include <string>

#include "base/error.h"
#include "engine/model/kv_plan.h"
#include "engine/model/rank_ranges.h"
#include "engine/model/state_layout.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::gemma4_test {
namespace {

// As the published one with 2 billion effective parameters: 35 layers, of which 20 share.
Json small_gemma4() {
  Json types = Json::array();
  for (int i = 0; i < 35; ++i) types.push_back(i % 5 == 4 ? "full_attention" : "sliding_attention");
  return {{"architectures", {"Gemma4ForCausalLM"}},
          {"num_hidden_layers", 35},
          {"hidden_size", 1536},
          {"intermediate_size", 6144},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 1},
          {"num_kv_shared_layers", 20},
          {"use_double_wide_mlp", true},
          {"layer_types", types}};
}

Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

TEST_CASE(
    "the cache of a Gemma 4 has the layers that make keys and values, in blocks of one size") {
  const ModelConfig config = load_config(small_gemma4()).config;
  CHECK(config.layers[14].has_own_kv());
  CHECK(config.layers[15].kv_layer == 13);
  CHECK(config.layers[19].kv_layer == 14);
  CHECK(config.layers[34].kv_layer == 14);
  CHECK(intermediate_size_of(config, 14) == 6144);
  CHECK(intermediate_size_of(config, 15) == 12288);
  const KvPlan plan = plan_kv_groups(config, 32768);
  // Three layers of 1 head of 512 are as large as six of 256.
  CHECK(plan.groups == KvGroups{.num_full = 1, .num_windowed = 2, .window = 512});
  REQUIRE(plan.heads.size() == 3);
  CHECK(plan.heads[0] == std::vector<KvHeads>(3, KvHeads{.num_kv_heads = 1, .head_dim = 512}));
  CHECK(plan.heads[1] == std::vector<KvHeads>(6, KvHeads{.num_kv_heads = 1, .head_dim = 256}));
  CHECK(plan.places[34] == plan.places[14]);
  CHECK(plan.places[33] == plan.places[13]);
  const auto counts = count_kv_heads(config);
  REQUIRE(counts.size() == 2);
  CHECK(counts[0].num_layers == 12);
  CHECK(counts[1].num_layers == 3);
}

TEST_CASE("a layer that reads another one's keys and values has no matrices for them") {
  const LoadedConfig model = load_config(small_gemma4());
  const TensorTable table(model);
  CHECK(table.find(Role::kK, 14)->rows == 512);
  CHECK(table.find(Role::kK, 13)->rows == 256);
  CHECK(table.find(Role::kQ, 34)->rows == 8 * 512);
  CHECK(table.find(Role::kK, 15) == nullptr);
  CHECK(table.find(Role::kV, 34) == nullptr);
  CHECK(table.find(Role::kKNorm, 34) == nullptr);
  CHECK(table.find(Role::kLayerInputTable)->cols == 35 * 256);
  CHECK(table.find(Role::kGate, 20)->rows == 12288);
}

TEST_CASE("values that are keys are the same tensor, and it is counted once") {
  Json json = small_gemma4();
  json["attention_k_eq_v"] = true;
  const LoadedConfig model = load_config(json);
  const TensorTable table(model);
  CHECK(table.find(Role::kV, 14)->name == "model.layers.14.self_attn.k_proj.weight");
  CHECK(table.find(Role::kV, 13)->name == "model.layers.13.self_attn.v_proj.weight");
  CHECK(count_parameters(load_config(small_gemma4())) - count_parameters(model) ==
        3.0 * 512 * 1536);
}

TEST_CASE("both spellings of heads that differ by layer say the same") {
  Json overrides = Json::object();
  for (int i = 4; i < 35; i += 5) overrides[std::to_string(i)] = {{"head_dim", 512}};
  const ModelConfig old_one = load_config(small_gemma4()).config;
  const ModelConfig new_one =
      load_config(with(small_gemma4(), "per_layer_config", overrides)).config;
  CHECK(old_one.layers == new_one.layers);
  CHECK(old_one.ropes[1].inv_freq == new_one.ropes[1].inv_freq);
}

TEST_CASE("layers that contradict each other are refused before weights are read") {
  const auto refused = [](const std::string& key, const Json& value, Code code) {
    return refusal(with(small_gemma4(), key, value), code);
  };
  CHECK_THAT(refused("per_layer_config", {{"4", {{"rope_theta", 3}}}}, Code::kUnsupported),
             Catch::Contains("per_layer_config: layer 4 says rope_theta = 3"));
  CHECK_THAT(refused("per_layer_config", {{"35", {{"head_dim", 512}}}}, Code::kInvalidArgument),
             Catch::Contains("number of a layer below 35"));
  CHECK_THAT(refused("per_layer_config", {{"4", {{"head_dim", 512}}}}, Code::kUnsupported),
             Catch::Contains("of 512 and of 256"));
  CHECK_THAT(refused("num_kv_shared_layers", 35, Code::kInvalidArgument),
             Catch::Contains("35 of 35 layers"));
  CHECK_THAT(refused("num_kv_shared_layers", 33, Code::kInvalidArgument),
             Catch::Contains("there is none"));
  CHECK_THAT(refused("num_key_value_heads", 3, Code::kInvalidArgument), Catch::Contains("3"));
  CHECK_THAT(refused("vocab_size_per_layer_input", 1000, Code::kUnsupported),
             Catch::Contains("1000 is less than the 262144 tokens"));
  CHECK_THAT(refused("use_bidirectional_attention", "all", Code::kUnsupported),
             Catch::Contains("use_bidirectional_attention"));
  CHECK_THAT(refused("enable_moe_block", true, Code::kInvalidArgument),
             Catch::Contains("num_experts"));
  Json uneven = with(small_gemma4(), "num_global_key_value_heads", 2);
  uneven["attention_k_eq_v"] = true;
  CHECK_NOTHROW(load_config(uneven));
  CHECK_THROWS_WITH(check_world_size(load_config(uneven).config, 2),
                    Catch::Contains("num_kv_heads of the model is 1"));
}

}  // namespace
}  // namespace tgi::gemma4_test
