// Which layers of a model share blocks of the KV cache: engine/tensor/kv_groups.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/tensor/kv_groups.h"

namespace tgi {

struct KvPlan {
  KvGroups groups;
  int32_t num_layers = 0;       // of the group with most
  std::vector<KvPlace> places;  // (num_layers of the model); of layers without attention unused
  std::vector<KvPlace> indexer_places{};  // likewise, of the keys of their indexers
  // Likewise, of what tokens add to entries, and of these; the indexer's are its keys.
  struct EntryPlaces {
    KvPlace rows;
    KvPlace entries;
  };
  std::vector<EntryPlaces> entry_places{};
  std::vector<EntryPlaces> indexer_entry_places{};
  // Where the heads of layers differ: by group, those of its layers, of all ranks together.
  std::vector<std::vector<KvHeads>> heads{};
};

// The heads of the layers that have their own keys and values, and how many each; of a model whose
// layers are alike one row.
struct KvHeadsCount {
  KvHeads heads;
  int32_t num_layers = 0;
};
std::vector<KvHeadsCount> count_kv_heads(const ModelConfig& config);

// All layers in one group, which keeps everything. A layer that reads another one's keys and values
// is where that one is.
KvPlan one_kv_group(const ModelConfig& config);

// Groups for contexts of at most `max_context` tokens: layers whose window is shorter are apart
// from the others, where that saves memory. Their blocks are of one size, for as many layers as
// fit. It is the largest one by which a whole context grows by no more than kKvGroupWaste: fewer
// groups are less to keep books of. Where there is none, as can be where layers differ, it is the
// one by which it grows least.
inline constexpr double kKvGroupWaste = 0.03;
KvPlan plan_kv_groups(const ModelConfig& config, int32_t max_context);

}  // namespace tgi
