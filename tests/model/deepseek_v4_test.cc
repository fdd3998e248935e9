// What the reader of DeepSeek V4 makes of its fields, where its layers have what they cache, and
// what is refused.
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "engine/model/architecture.h"
#include "engine/model/kv_plan.h"
#include "engine/model/tensor_table.h"
#include "tests/catch.h"
#include "tests/model/config_refusal.h"
#include "tests/model/model_files.h"

namespace tgi::deepseek_v4_test {
namespace {

LoadedConfig load(Json config) {
  config["architectures"] = {"DeepseekV4ForCausalLM"};
  return load_config(config);
}

std::string refused(Json config, Code code = Code::kInvalidArgument) {
  config["architectures"] = {"DeepseekV4ForCausalLM"};
  return refusal(config, code);
}

std::string rates_of(const ModelConfig& model) {
  std::string out;
  for (const LayerPlan& layer : model.layers) {
    out += std::to_string(layer.tokens_per_entry) + (layer.entries_overlap ? "o " : " ");
  }
  return out;
}

}  // namespace

TEST_CASE("DeepSeek V4 sees entries by the type of a layer, in every spelling") {
  CHECK(rates_of(load({{"num_hidden_layers", 6}}).config) == "128 128 128 4o 128 4o ");
  CHECK(rates_of(load({{"num_hidden_layers", 4},
                       {"compress_ratios", {0, 0, 4, 128, 4}},
                       {"compress_rate_hca", 64}})
                     .config) == "0 0 4o 64 ");
  const LoadedConfig loaded =
      load({{"num_hidden_layers", 2},
            {"layer_types", {"sliding_attention", "compressed_sparse_attention"}},
            {"compress_rates", {{"compressed_sparse_attention", 8}}},
            {"num_hash_layers", 1}});
  const ModelConfig& model = loaded.config;
  CHECK(rates_of(model) == "0 8o ");
  CHECK(model.layers[0].sliding_window == 128);
  CHECK(model.layers[1].sliding_window == 128);
  CHECK(model.layers[0].seen == SeenTokens::kAll);
  CHECK(model.layers[1].seen == SeenTokens::kOwnChoice);
  CHECK(model.layers[0].experts_by_token);
  CHECK_FALSE(model.layers[1].experts_by_token);
  CHECK(model.experts.route.score == RouterScore::kSqrtSoftplus);
  CHECK(model.streams.num_connections() == 24);
  const TensorTable table(loaded);
  CHECK(table.find(Role::kEntryValues, 0) == nullptr);
  CHECK(table.find(Role::kEntryValues, 1)->rows == 1024);
  CHECK(table.find(Role::kEntryGateBias, 1)->cols == 8 * 1024);
  CHECK(table.find(Role::kIndexerEntryGates, 1)->rows == 256);
  CHECK(table.find(Role::kOutputGroups, 0)->rows == 8 * 1024);
  CHECK(table.find(Role::kOutputGroups, 0)->cols == 4096);
  CHECK(table.find(Role::kExpertsByToken, 0)->rows == 129280);
}

TEST_CASE("layers that see entries have a rope of their own, and what turns back") {
  const Json yarn = {{"type", "yarn"},
                     {"factor", 16},
                     {"original_max_position_embeddings", 65536},
                     {"beta_fast", 32},
                     {"beta_slow", 1}};
  const ModelConfig old =
      load({{"num_hidden_layers", 3}, {"rope_scaling", yarn}, {"compress_ratios", {0, 4, 128}}})
          .config;
  REQUIRE(old.ropes.size() == 4);
  CHECK(old.layers[0].rope == 0);
  CHECK(old.layers[1].rope == 1);
  CHECK(old.layers[2].back_rope == 3);
  CHECK(old.ropes[0].rotary_dim == 64);
  CHECK(old.ropes[0].inv_freq[31] == Approx(std::pow(10000.0, -62.0 / 64.0)));
  CHECK(old.ropes[1].inv_freq[31] == Approx(std::pow(160000.0, -62.0 / 64.0) / 16.0));
  CHECK(old.ropes[1].attention_factor == 1.0F);
  CHECK(old.ropes[3].inv_freq[31] == -old.ropes[1].inv_freq[31]);

  Json own = yarn;
  own["rope_type"] = "yarn";
  own.erase("type");
  own["rope_theta"] = 160000.0;
  const Json main = {{"rope_type", "default"}, {"rope_theta", 500.0}};
  const ModelConfig made =
      load({{"num_hidden_layers", 3}, {"rope_parameters", {{"main", main}, {"compress", own}}}})
          .config;
  CHECK(made.ropes[0].inv_freq[31] == Approx(std::pow(500.0, -62.0 / 64.0)));
  CHECK(made.ropes[1].attention_factor > 1.2F);
}

TEST_CASE("what a layer caches behind its window is kept, and what entries are made of is not") {
  const ModelConfig model = load({{"num_hidden_layers", 4}}).config;
  const KvPlan plan = plan_kv_groups(model, 8192);
  std::set<std::pair<int32_t, int32_t>> taken;
  const auto check = [&](KvPlace place, bool is_windowed, const KvHeads& heads) {
    CHECK(taken.emplace(place.group, place.layer).second);
    CHECK(plan.groups.is_windowed(place.group) == is_windowed);
    CHECK(plan.heads.at(static_cast<size_t>(place.group)).at(static_cast<size_t>(place.layer)) ==
          heads);
  };
  const auto keys = [](int32_t head_dim, int32_t tokens_per_row = 1) {
    return KvHeads{.num_kv_heads = 1,
                   .head_dim = head_dim,
                   .keys_only = true,
                   .tokens_per_row = tokens_per_row};
  };
  for (size_t i = 0; i < 4; ++i) {
    INFO("layer " << i);
    const bool chooses = i == 3;
    check(plan.places[i], true, keys(512));
    check(plan.entry_places[i].rows, true, keys(chooses ? 2048 : 1024));
    check(plan.entry_places[i].entries, false, keys(512, chooses ? 4 : 128));
  }
  check(plan.indexer_entry_places[3].rows, true, keys(512));
  check(plan.indexer_entry_places[3].entries, false, keys(128, 4));
  CHECK(plan.groups.window == 128);
  CHECK(one_kv_group(model).groups == KvGroups{});
}

TEST_CASE("what DeepSeek V4 can't be is refused by name") {
  CHECK_THAT(refused({{"compress_rate_csa", 1}}), Catch::Contains("compress_rate_csa: expected 2"));
  CHECK_THAT(refused({{"compress_rates", {{"sliding_attention", 4}}}}),
             Catch::Contains("sliding_attention"));
  CHECK_THAT(refused({{"num_hidden_layers", 2}, {"compress_ratios", {4, 8}}}),
             Catch::Contains("compress_ratios: entry 1: expected 0, 4 or 128, got 8"));
  CHECK_THAT(refused({{"num_hidden_layers", 3}, {"compress_ratios", {4, 4}}}),
             Catch::Contains("compress_ratios: expected 3 numbers, one per layer, got 2"));
  CHECK_THAT(refused({{"num_hidden_layers", 1}, {"layer_types", {"full_attention"}}}),
             Catch::Contains("layer_types: entry 0: expected sliding_attention"));
  CHECK_THAT(refused({{"num_hidden_layers", 1}, {"mlp_layer_types", {"dense"}}}),
             Catch::Contains("mlp_layer_types: entry 0: expected hash_moe or moe, got 'dense'"));
  CHECK_THAT(refused({{"o_groups", 7}}), Catch::Contains("o_groups: 64 heads"));
  CHECK_THAT(refused({{"scoring_func", "softmax"}}, Code::kUnsupported),
             Catch::Contains("scoring_func: expected sqrtsoftplus or sigmoid, got 'softmax'"));
  CHECK_THAT(refused({{"hidden_act", "relu2"}}, Code::kUnsupported),
             Catch::Contains("hidden_act: \"relu2\" is not supported, expected silu"));
  CHECK_THAT(refused({{"n_shared_experts", 2}}, Code::kUnsupported),
             Catch::Contains("n_shared_experts"));
  CHECK_THAT(refused({{"attention_bias", true}}, Code::kUnsupported),
             Catch::Contains("attention_bias"));
}

}  // namespace tgi::deepseek_v4_test
