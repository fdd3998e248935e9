// Which layers of a model share blocks of the KV cache: engine/tensor/kv_groups.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/tensor/kv_groups.h"

namespace tgi {

struct KvPlan {
  KvGroups groups;
  int32_t num_layers = 0;       // of a group
  std::vector<KvPlace> places;  // (num_layers of the model); of layers without attention unused
};

// All layers in one group, which keeps everything.
KvPlan one_kv_group(const ModelConfig& config);

// Groups for contexts of at most `max_context` tokens: layers whose window is shorter are apart
// from the others, where that saves memory. Groups are of one size, so that their blocks are. It is
// the largest one by which a whole context grows by no more than kKvGroupWaste: fewer groups are
// less to keep books of.
inline constexpr double kKvGroupWaste = 0.03;
KvPlan plan_kv_groups(const ModelConfig& config, int32_t max_context);

}  // namespace tgi
