#include "engine/model/kv_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace tgi {
namespace {

// The tokens that a layer keeps of a context of `max_context`.
int32_t kept_tokens(const LayerPlan& layer, int32_t max_context) {
  const int32_t reach = layer.reach();
  return reach == 0 || reach >= max_context - kKvTile ? max_context : reach + kKvTile;
}

// As it is cached: of latents one row for all heads.
KvHeads cached_heads_of(const ModelConfig& config, int32_t layer) {
  if (!has_latents(config)) return kv_heads_of(config, layer);
  return {.num_kv_heads = 1, .head_dim = config.latent.key_dim(), .keys_only = true};
}

KvHeads indexer_keys(const ModelConfig& config) {
  return {.num_kv_heads = 1, .head_dim = config.indexer.head_dim, .keys_only = true};
}

// Layers that keep the same tokens, in their order.
struct Keepers {
  std::vector<int32_t> layers;
  std::vector<int64_t> sizes;  // of each, for a token
  int32_t kept = 0;            // tokens

  int64_t size() const { return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}); }
};

// Calls use(layer, group, index in the group) for each that is dealt to groups of at most `limit`;
// the number of groups.
template <typename Use>
int32_t deal(const Keepers& keepers, int64_t limit, Use use) {
  int32_t num_groups = 0;
  int32_t index = 0;
  int64_t used = limit;  // of a group that is not there
  for (size_t i = 0; i < keepers.layers.size(); ++i) {
    if (used + keepers.sizes[i] > limit) {
      ++num_groups;
      used = 0;
      index = 0;
    }
    used += keepers.sizes[i];
    use(keepers.layers[i], num_groups - 1, index++);
  }
  return num_groups;
}

int32_t count_groups(const Keepers& keepers, int64_t limit) {
  return deal(keepers, limit, [](int32_t, int32_t, int32_t) {});
}

// The sizes that layers which follow each other have together, and no less than one layer has,
// descending.
std::vector<int64_t> group_sizes(const Keepers& full, const Keepers& windowed) {
  std::vector<int64_t> out;
  int64_t largest = 0;
  for (const Keepers* keepers : {&full, &windowed}) {
    for (size_t begin = 0; begin < keepers->sizes.size(); ++begin) {
      largest = std::max(largest, keepers->sizes[begin]);
      int64_t sum = 0;
      for (size_t i = begin; i < keepers->sizes.size(); ++i) {
        out.push_back(sum += keepers->sizes[i]);
      }
    }
  }
  std::erase_if(out, [largest](int64_t size) { return size < largest; });
  std::ranges::sort(out, std::greater<>());
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

int64_t best_group_size(const Keepers& full, const Keepers& windowed) {
  const auto tokens = [](const Keepers& keepers, int64_t size) { return size * keepers.kept; };
  const auto wanted =
      static_cast<double>(tokens(full, full.size()) + tokens(windowed, windowed.size()));
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t size : group_sizes(full, windowed)) {
    const auto taken = static_cast<double>(tokens(full, count_groups(full, size) * size) +
                                           tokens(windowed, count_groups(windowed, size) * size));
    if (taken - wanted <= kKvGroupWaste * wanted) return size;
    if (taken - wanted >= least) continue;
    least = taken - wanted;
    best = size;
  }
  return best;
}

// Puts the layers in groups, of which `first_group` is the first.
int32_t place(const ModelConfig& config,
              const Keepers& keepers,
              int64_t size,
              int32_t first_group,
              KvPlan& out) {
  return deal(keepers, size, [&](int32_t layer, int32_t group, int32_t index) {
    const auto at = static_cast<size_t>(first_group + group);
    out.places[static_cast<size_t>(layer)] = {.group = first_group + group, .layer = index};
    out.num_layers = std::max(out.num_layers, index + 1);
    out.heads.resize(std::max(out.heads.size(), at + 1));
    out.heads[at].push_back(cached_heads_of(config, layer));
  });
}

// The keys of indexers lie behind all that attention has in the same blocks.
void place_indexers(const ModelConfig& config, KvPlan& out) {
  if (!has_indexer(config)) return;
  out.indexer_places.resize(config.layers.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i].seen != SeenTokens::kOwnChoice) continue;
    const int32_t group = out.places[i].group;
    std::vector<KvHeads>& heads = out.heads[static_cast<size_t>(group)];
    out.indexer_places[i] = {.group = group, .layer = static_cast<int32_t>(heads.size())};
    heads.push_back(indexer_keys(config));
    out.num_layers = std::max(out.num_layers, static_cast<int32_t>(heads.size()));
  }
}

// Where layers do not differ nothing is said of each.
KvPlan finish(const ModelConfig& config, KvPlan plan) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const LayerPlan& layer = config.layers[i];
    if (layer.has_attention && !layer.has_own_kv()) {
      plan.places[i] = plan.places[static_cast<size_t>(layer.kv_layer)];
    }
  }
  place_indexers(config, plan);
  if (!has_unlike_heads(config) && !has_indexer(config)) plan.heads.clear();
  return plan;
}

Keepers keepers_of(const ModelConfig& config, int32_t max_context, bool windowed) {
  Keepers out;
  for (int32_t i = 0; i < static_cast<int32_t>(config.layers.size()); ++i) {
    const LayerPlan& layer = config.layers[static_cast<size_t>(i)];
    const int32_t kept = kept_tokens(layer, max_context);
    if (!layer.has_own_kv() || (kept < max_context) != windowed) continue;
    out.layers.push_back(i);
    // A config that says no sizes says that all are the same.
    const KvHeads heads = cached_heads_of(config, i);
    int64_t size = heads.key_numbers() + heads.value_numbers();
    if (layer.seen == SeenTokens::kOwnChoice) size += indexer_keys(config).key_numbers();
    out.sizes.push_back(std::max<int64_t>(size, 1));
    out.kept = std::max(out.kept, kept);
  }
  return out;
}

}  // namespace

std::vector<KvHeadsCount> count_kv_heads(const ModelConfig& config) {
  std::vector<KvHeadsCount> out;
  for (int32_t i = 0; i < static_cast<int32_t>(config.layers.size()); ++i) {
    if (!config.layers[static_cast<size_t>(i)].has_own_kv()) continue;
    const KvHeads heads = kv_heads_of(config, i);
    const auto alike = [&](const KvHeadsCount& row) { return row.heads == heads; };
    auto row = std::ranges::find_if(out, alike);
    if (row == out.end()) row = out.insert(out.end(), {.heads = heads});
    ++row->num_layers;
  }
  return out;
}

KvPlan one_kv_group(const ModelConfig& config) {
  constexpr int32_t kAll = std::numeric_limits<int32_t>::max();
  Keepers all = keepers_of(config, kAll, false);
  const Keepers windowed = keepers_of(config, kAll, true);
  KvPlan out;
  out.places.resize(config.layers.size());
  all.layers.insert(all.layers.end(), windowed.layers.begin(), windowed.layers.end());
  all.sizes.insert(all.sizes.end(), windowed.sizes.begin(), windowed.sizes.end());
  std::ranges::sort(all.layers);
  (void)place(config, all, all.size(), 0, out);
  return finish(config, std::move(out));
}

KvPlan plan_kv_groups(const ModelConfig& config, int32_t max_context) {
  const Keepers full = keepers_of(config, max_context, false);
  const Keepers windowed = keepers_of(config, max_context, true);
  if (windowed.layers.empty()) return one_kv_group(config);

  KvPlan out;
  out.places.resize(config.layers.size());
  const int64_t size = best_group_size(full, windowed);
  out.groups.num_full = place(config, full, size, 0, out);
  out.groups.num_windowed = place(config, windowed, size, out.groups.num_full, out);
  for (const int32_t layer : windowed.layers) {
    out.groups.window =
        std::max(out.groups.window, config.layers[static_cast<size_t>(layer)].reach());
  }
  return finish(config, std::move(out));
}

}  // namespace tgi
