// The paged cache of keys and values: where each layer has its own. Heads are held in a multiple of
// 16 columns, which the kernels want, values in as many as their keys.
//
// Where all layers are alike, those of one layer lie together, block after block. Else those of a
// block do, layer after layer, and a block is a whole number of any layer's rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cuda/kernels/step.h"
#include "engine/device/backend.h"

namespace tgi::cuda {

constexpr int32_t padded_head_dim(int32_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}

// Of KvHeads, or of the arguments of an op that has them: kernels take keys and values in rows of
// one length, of which what is past their own end is 0.
template <typename Heads>
constexpr int32_t padded_dim(const Heads& heads) {
  return padded_head_dim(std::max(heads.head_dim, heads.value_cols()));
}

class KvCache {
 public:
  // Throws kUnsupported for what there are no kernels for.
  static int64_t bytes(const KvLayout& layout);

  KvCache() = default;
  // Takes what bytes() says. Throws kOutOfMemory.
  explicit KvCache(const KvLayout& layout);

  const LayerCache& of(KvPlace place) const {
    const size_t group = layers_.size() == 1 ? 0 : static_cast<size_t>(place.group);
    return layers_[group][static_cast<size_t>(place.layer)];
  }

 private:
  Buffer memory_;
  std::vector<std::vector<LayerCache>> layers_;  // by group; of alike layers one
};

}  // namespace tgi::cuda
