#include "engine/model/kv_plan.h"

#include <algorithm>
#include <set>

#include "tests/catch.h"

namespace tgi {
namespace {

// A letter for each layer: w with a window, - without, s with no attention at all.
ModelConfig of_layers(std::string_view letters, int32_t window) {
  ModelConfig out;
  for (const char letter : letters) {
    LayerPlan& layer = out.layers.emplace_back();
    layer.has_attention = letter != 's';
    layer.sliding_window = letter == 'w' ? window : 0;
  }
  out.num_layers = static_cast<int32_t>(letters.size());
  return out;
}

// No two layers have the same place, and windowed groups hold windowed layers alone.
void check_places(const ModelConfig& config, const KvPlan& plan) {
  std::set<std::pair<int32_t, int32_t>> taken;
  REQUIRE(plan.places.size() == config.layers.size());
  for (size_t i = 0; i < plan.places.size(); ++i) {
    if (!config.layers[i].has_attention) continue;
    const KvPlace place = plan.places[i];
    INFO("layer " << i);
    CHECK(taken.emplace(place.group, place.layer).second);
    CHECK(place.layer < plan.num_layers);
    CHECK(place.group < plan.groups.num_groups());
    if (plan.groups.is_windowed(place.group)) CHECK(config.layers[i].sliding_window > 0);
    if (plan.groups.num_windowed > 0 && config.layers[i].sliding_window > 0)
      CHECK(plan.groups.is_windowed(place.group));
  }
}

KvPlan plan_of(const ModelConfig& config, int32_t max_context) {
  KvPlan plan = plan_kv_groups(config, max_context);
  check_places(config, plan);
  return plan;
}

}  // namespace

TEST_CASE("layers without windows are one group, and so are windows as long as the context") {
  CHECK(plan_of(of_layers("----", 0), 4096).groups == KvGroups{});
  CHECK(plan_of(of_layers("----", 0), 4096).num_layers == 4);
  CHECK(plan_of(of_layers("w-w-", 4096), 4096).groups == KvGroups{});
  CHECK(plan_of(of_layers("w-w-", 4090), 4096).groups == KvGroups{});
  CHECK(plan_of(of_layers("s-s-", 0), 4096).num_layers == 2);
  CHECK(plan_of(of_layers("ssss", 0), 4096).num_layers == 0);
}

TEST_CASE("windowed layers are in groups of their own, of one size with the others") {
  const KvPlan half = plan_of(of_layers("w-w-w-", 128), 4096);
  CHECK(half.num_layers == 3);
  CHECK(half.groups == KvGroups{.num_full = 1, .num_windowed = 1, .window = 128});

  const KvPlan all = plan_of(of_layers("wwww", 128), 4096);
  CHECK(all.num_layers == 4);
  CHECK(all.groups == KvGroups{.num_full = 0, .num_windowed = 1, .window = 128});

  // A place too many in a windowed group costs little beside a long context, one in the others not.
  const KvPlan gemma = plan_of(of_layers("wwwww-wwwww-wwwww-wwwww-wwwww-wwww", 1024), 32768);
  CHECK(gemma.num_layers == 5);
  CHECK(gemma.groups == KvGroups{.num_full = 1, .num_windowed = 6, .window = 1024});
  CHECK(plan_of(of_layers("wwwwwww--", 1024), 32768).num_layers == 2);
  CHECK(plan_of(of_layers("wwwwwww-", 1024), 2048).num_layers == 1);

  const KvPlan mixed = plan_of(of_layers("sw-sw-s", 64), 1024);
  CHECK(mixed.num_layers == 2);
  CHECK(mixed.groups == KvGroups{.num_full = 1, .num_windowed = 1, .window = 64});
}

TEST_CASE("blocks of layers with other heads are of one size, and hold as many as fit") {
  // Five layers with a window and 4 heads of 64 for each one without, of 2 heads of 96.
  ModelConfig config = of_layers("wwwww-wwwww-", 512);
  config.num_kv_heads = 4;
  config.head_dim = 64;
  for (LayerPlan& layer : config.layers) {
    if (layer.sliding_window > 0) continue;
    layer.num_kv_heads = 2;
    layer.head_dim = 96;
  }
  const KvPlan plan = plan_of(config, 8192);
  const auto size_of = [](const std::vector<KvHeads>& group) {
    int64_t size = 0;
    for (const KvHeads& heads : group) size += heads.key_numbers();
    return size;
  };
  REQUIRE(plan.heads.size() == static_cast<size_t>(plan.groups.num_groups()));
  int64_t largest = 0;
  int64_t all = 0;
  for (const std::vector<KvHeads>& group : plan.heads) {
    largest = std::max(largest, size_of(group));
    all += size_of(group);
  }
  CHECK(all == 10 * 4 * 64 + 2 * 2 * 96);
  for (size_t i = 0; i < plan.places.size(); ++i) {
    const KvPlace place = plan.places[i];
    CHECK(plan.heads[static_cast<size_t>(place.group)][static_cast<size_t>(place.layer)] ==
          kv_heads_of(config, static_cast<int32_t>(i)));
  }
  // Two without a window in one block of 384; one and a half of the others would fit.
  CHECK(plan.groups == KvGroups{.num_full = 1, .num_windowed = 10, .window = 512});
  CHECK(largest == 384);

  // Within a window's context all are in one block.
  const KvPlan one = one_kv_group(config);
  CHECK(one.num_layers == 12);
  REQUIRE(one.heads.size() == 1);
  CHECK(size_of(one.heads[0]) == all);
}

TEST_CASE("a layer that reads another one's keys and values takes no place") {
  ModelConfig config = of_layers("-w-w-w", 128);
  config.layers[4].kv_layer = 2;
  config.layers[5].kv_layer = 3;
  const KvPlan plan = plan_kv_groups(config, 4096);
  CHECK(plan.num_layers == 2);
  CHECK(plan.groups == KvGroups{.num_full = 1, .num_windowed = 1, .window = 128});
  CHECK(plan.places[4] == plan.places[2]);
  CHECK(plan.places[5] == plan.places[3]);
  CHECK(plan.places[0] != plan.places[2]);
  CHECK(one_kv_group(config).num_layers == 4);
}

TEST_CASE("what windowed groups need begins at a tile") {
  const KvGroups groups = {.num_full = 1, .num_windowed = 1, .window = 100};
  CHECK(groups.first_needed(0) == 0);
  CHECK(groups.first_needed(99) == 0);
  CHECK(groups.first_needed(162) == 0);
  CHECK(groups.first_needed(163) == 64);  // sees 64 to 163
  CHECK(groups.first_needed(227) == 128);
}

}  // namespace tgi
