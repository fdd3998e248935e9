// Of whose keys and values a model's layers read, what people are shown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/model/kv_plan.h"
#include "ipc/protocol.h"

namespace tgi {

inline int64_t num_shared_kv_layers(const ModelConfig& config) {
  return std::ranges::count_if(config.layers, [](const LayerPlan& layer) {
    return layer.has_attention && !layer.has_own_kv();
  });
}

// Nothing where each layer has its own, and all are alike.
inline std::vector<ipc::KvHeads> shown_kv_heads(const ModelConfig& config) {
  std::vector<ipc::KvHeads> out;
  if (!has_unlike_heads(config) && num_shared_kv_layers(config) == 0) return out;
  for (const KvHeadsCount& row : count_kv_heads(config)) {
    out.push_back({.num_layers = row.num_layers,
                   .num_kv_heads = row.heads.num_kv_heads,
                   .head_dim = row.heads.head_dim,
                   .value_dim = row.heads.value_cols()});
  }
  return out;
}

}  // namespace tgi
