#include "engine/model/kv_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace tgi {
namespace {

// The tokens that are kept of a context of `max_context`.
int32_t kept_tokens(int32_t reach, int32_t max_context) {
  return reach == 0 || reach >= max_context - kKvTile ? max_context : reach + kKvTile;
}

// As it is cached: of latents one row for all heads.
KvHeads cached_heads_of(const ModelConfig& config, int32_t layer) {
  if (!has_latents(config)) return kv_heads_of(config, layer);
  return {.num_kv_heads = 1, .head_dim = latent_key_dim(config, layer), .keys_only = true};
}

KvHeads indexer_keys(const ModelConfig& config) {
  return {.num_kv_heads = 1, .head_dim = config.indexer.head_dim, .keys_only = true};
}

// The layers that read that one's keys and values, itself included, and choose among its tokens.
int64_t count_choosers(const ModelConfig& config, int32_t layer) {
  int64_t count = 0;
  for (int32_t i = 0; i < static_cast<int32_t>(config.layers.size()); ++i) {
    const LayerPlan& plan = config.layers[static_cast<size_t>(i)];
    if (plan.seen == SeenTokens::kOwnChoice && (i == layer || plan.kv_layer == layer)) ++count;
  }
  return count;
}

// What a layer has in the cache.
enum class Part : uint8_t { kKv, kEntryRows, kEntries, kIndexerEntryRows, kIndexerEntries };

struct Kept {
  int32_t layer = 0;
  Part part = Part::kKv;
  KvHeads heads{};
  int32_t reach = 0;      // tokens that a step sees of it, its own included; 0: all
  int64_t more_size = 0;  // of what lies beside it (place_indexers)

  // Numbers of a token. A config that says no sizes says that all are the same.
  int64_t size() const {
    const int64_t numbers =
        (heads.key_numbers() + heads.value_numbers()) / heads.tokens_per_row + more_size;
    return std::max<int64_t>(numbers, 1);
  }
};

// Of entries that are `head_dim` numbers each.
void add_entries(const LayerPlan& layer, int32_t head_dim, Kept rows, std::vector<Kept>& out) {
  const int32_t runs = layer.entries_overlap ? 2 : 1;
  rows.heads = {.num_kv_heads = 1, .head_dim = 2 * runs * head_dim, .keys_only = true};
  rows.reach = runs * layer.tokens_per_entry;
  out.push_back(rows);
  const bool is_indexers = rows.part == Part::kIndexerEntryRows;
  out.push_back({.layer = rows.layer,
                 .part = is_indexers ? Part::kIndexerEntries : Part::kEntries,
                 .heads = {.num_kv_heads = 1,
                           .head_dim = head_dim,
                           .keys_only = true,
                           .tokens_per_row = layer.tokens_per_entry}});
}

std::vector<Kept> parts_of(const ModelConfig& config) {
  std::vector<Kept> out;
  for (int32_t i = 0; i < static_cast<int32_t>(config.layers.size()); ++i) {
    const LayerPlan& layer = config.layers[static_cast<size_t>(i)];
    if (!layer.has_own_kv()) continue;
    const bool chooses = layer.seen == SeenTokens::kOwnChoice;
    Kept kv{.layer = i, .heads = cached_heads_of(config, i), .reach = layer.reach()};
    if (!has_entries(config)) {
      kv.more_size = count_choosers(config, i) * indexer_keys(config).key_numbers();
    }
    out.push_back(kv);
    if (layer.tokens_per_entry == 0) continue;
    add_entries(layer, config.latent.rank, {.layer = i, .part = Part::kEntryRows}, out);
    if (!chooses) continue;
    add_entries(layer, config.indexer.head_dim, {.layer = i, .part = Part::kIndexerEntryRows}, out);
  }
  return out;
}

// Parts of layers of which the same tokens are kept, in their order.
struct Keepers {
  std::vector<Kept> parts;
  std::vector<int64_t> sizes;  // of each, for a token
  int32_t kept = 0;            // tokens

  int64_t size() const { return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}); }
};

// Calls use(part, group, index in the group) for each that is dealt to groups of at most `limit`;
// the number of groups.
template <typename Use>
int32_t deal(const Keepers& keepers, int64_t limit, Use use) {
  int32_t num_groups = 0;
  int32_t index = 0;
  int64_t used = limit;  // of a group that is not there
  for (size_t i = 0; i < keepers.parts.size(); ++i) {
    if (used + keepers.sizes[i] > limit) {
      ++num_groups;
      used = 0;
      index = 0;
    }
    used += keepers.sizes[i];
    use(keepers.parts[i], num_groups - 1, index++);
  }
  return num_groups;
}

int32_t count_groups(const Keepers& keepers, int64_t limit) {
  return deal(keepers, limit, [](const Kept&, int32_t, int32_t) {});
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

KvPlace& place_of(const Kept& kept, KvPlan& plan) {
  const auto layer = static_cast<size_t>(kept.layer);
  switch (kept.part) {
    case Part::kEntryRows:
      return plan.entry_places[layer].rows;
    case Part::kEntries:
      return plan.entry_places[layer].entries;
    case Part::kIndexerEntryRows:
      return plan.indexer_entry_places[layer].rows;
    case Part::kIndexerEntries:
      return plan.indexer_entry_places[layer].entries;
    case Part::kKv:
      break;
  }
  return plan.places[layer];
}

// Puts the parts in groups, of which `first_group` is the first.
int32_t place(const Keepers& keepers, int64_t size, int32_t first_group, KvPlan& out) {
  return deal(keepers, size, [&](const Kept& kept, int32_t group, int32_t index) {
    const auto at = static_cast<size_t>(first_group + group);
    place_of(kept, out) = {.group = first_group + group, .layer = index};
    out.num_layers = std::max(out.num_layers, index + 1);
    out.heads.resize(std::max(out.heads.size(), at + 1));
    out.heads[at].push_back(kept.heads);
  });
}

KvPlan empty_plan(const ModelConfig& config) {
  KvPlan out;
  out.places.resize(config.layers.size());
  if (!has_entries(config)) return out;
  out.entry_places.resize(config.layers.size());
  out.indexer_entry_places.resize(config.layers.size());
  return out;
}

// The keys of indexers lie behind all that attention has in the same blocks.
void place_indexers(const ModelConfig& config, KvPlan& out) {
  if (!has_indexer(config) || has_entries(config)) return;
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

// Of what of latents is cached.
bool has_unlike_latents(const ModelConfig& config) {
  int32_t first = 0;
  for (int32_t i = 0; has_latents(config) && i < static_cast<int32_t>(config.layers.size()); ++i) {
    if (!config.layers[static_cast<size_t>(i)].has_own_kv()) continue;
    const int32_t columns = latent_key_dim(config, i);
    if (first > 0 && columns != first) return true;
    first = columns;
  }
  return false;
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
  const bool differ = has_unlike_heads(config) || has_unlike_latents(config) ||
                      has_indexer(config) || has_entries(config);
  if (!differ) plan.heads.clear();
  return plan;
}

Keepers keepers_of(const ModelConfig& config, int32_t max_context, bool windowed) {
  Keepers out;
  for (const Kept& part : parts_of(config)) {
    const int32_t kept = kept_tokens(part.reach, max_context);
    if ((kept < max_context) != windowed) continue;
    out.parts.push_back(part);
    out.sizes.push_back(part.size());
    out.kept = std::max(out.kept, kept);
  }
  return out;
}

Keepers all_keepers(const ModelConfig& config) {
  Keepers out;
  for (const Kept& part : parts_of(config)) {
    out.parts.push_back(part);
    out.sizes.push_back(part.size());
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
  const Keepers all = all_keepers(config);
  KvPlan out = empty_plan(config);
  (void)place(all, all.size(), 0, out);
  return finish(config, std::move(out));
}

KvPlan plan_kv_groups(const ModelConfig& config, int32_t max_context) {
  const Keepers full = keepers_of(config, max_context, false);
  const Keepers windowed = keepers_of(config, max_context, true);
  if (windowed.parts.empty()) return one_kv_group(config);

  KvPlan out = empty_plan(config);
  const int64_t size = best_group_size(full, windowed);
  out.groups.num_full = place(full, size, 0, out);
  out.groups.num_windowed = place(windowed, size, out.groups.num_full, out);
  for (const Kept& part : windowed.parts) {
    out.groups.window = std::max(out.groups.window, part.reach);
  }
  return finish(config, std::move(out));
}

}  // namespace tgi
