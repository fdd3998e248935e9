#include "engine/model/kv_plan.h"

#include <algorithm>

namespace tgi {
namespace {

int32_t groups_for(int32_t num_layers, int32_t group_size) {
  return (num_layers + group_size - 1) / group_size;
}

// The tokens that a layer keeps of a context of `max_context`.
int32_t kept_tokens(const LayerPlan& layer, int32_t max_context) {
  const int32_t reach = layer.reach();
  return reach == 0 || reach >= max_context - kKvTile ? max_context : reach + kKvTile;
}

int32_t largest_group(int32_t num_full, int32_t num_windowed, int64_t kept, int64_t max_context) {
  const double wanted = static_cast<double>(num_full * max_context + num_windowed * kept);
  for (int32_t size = std::max(num_full, num_windowed); size > 1; --size) {
    const int64_t unused_full = int64_t{groups_for(num_full, size)} * size - num_full;
    const int64_t unused_windowed = int64_t{groups_for(num_windowed, size)} * size - num_windowed;
    const auto wasted = static_cast<double>(unused_full * max_context + unused_windowed * kept);
    if (wasted <= kKvGroupWaste * wanted) return size;
  }
  return 1;
}

}  // namespace

KvPlan one_kv_group(const ModelConfig& config) {
  KvPlan out;
  for (const LayerPlan& layer : config.layers) {
    out.places.push_back({.group = 0, .layer = out.num_layers});
    if (layer.has_attention) ++out.num_layers;
  }
  return out;
}

KvPlan plan_kv_groups(const ModelConfig& config, int32_t max_context) {
  int32_t num_full = 0;
  int32_t num_windowed = 0;
  int32_t window = 0;
  int32_t kept = 0;
  const auto keeps_all = [&](const LayerPlan& layer) {
    return kept_tokens(layer, max_context) == max_context;
  };
  for (const LayerPlan& layer : config.layers) {
    if (!layer.has_attention) continue;
    ++(keeps_all(layer) ? num_full : num_windowed);
    if (keeps_all(layer)) continue;
    window = std::max(window, layer.reach());
    kept = std::max(kept, kept_tokens(layer, max_context));
  }
  if (num_windowed == 0) return one_kv_group(config);

  KvPlan out;
  out.num_layers = largest_group(num_full, num_windowed, kept, max_context);
  out.groups = {.num_full = groups_for(num_full, out.num_layers),
                .num_windowed = groups_for(num_windowed, out.num_layers),
                .window = window};
  int32_t next_full = 0;
  int32_t next_windowed = out.groups.num_full * out.num_layers;
  for (const LayerPlan& layer : config.layers) {
    if (!layer.has_attention) {
      out.places.emplace_back();
      continue;
    }
    const int32_t index = keeps_all(layer) ? next_full++ : next_windowed++;
    out.places.push_back({.group = index / out.num_layers, .layer = index % out.num_layers});
  }
  return out;
}

}  // namespace tgi
