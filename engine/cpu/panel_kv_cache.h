// The paged KV cache in panels (panel_layout.h), so that attention runs on the same inner loop as
// matmul. Per layer, block and KV head, for every 16 positions:
//
//   keys    one panel: rows are the 16 positions, columns are head_dim
//   values  head_dim / 16 panels (rounded up): rows are 16 of head_dim, columns are the 16
//   positions; none where the first columns of the keys are the values (KvLayout.latent_dim)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_layout.h"
#include "engine/device/backend.h"
#include "engine/tensor/tensor.h"

namespace tgi {

class PanelKvCache {
 public:
  static int64_t bytes(const KvLayout& layout);

  // Throws kUnsupported unless the block size is a multiple of 16, kOutOfMemory.
  PanelKvCache(const KvLayout& layout, PairOrder pair_order);

  const KvLayout& layout() const { return layout_; }

  // k and v: (head_dim), rounded to the cache's type. v is null where keys hold the values.
  void store(int32_t layer,
             int32_t kv_head,
             int32_t block,
             int32_t offset_in_block,
             const float* k,
             const float* v);

  // Fills the cache fields of `out`.
  void describe(int32_t layer, int32_t kv_head, AttentionBlock& out) const;

 private:
  // Bytes of one KV head in one block.
  static int64_t key_bytes(const KvLayout& layout);
  static int64_t value_bytes(const KvLayout& layout);

  std::byte* keys(int32_t layer, int32_t kv_head, int64_t block) const;
  std::byte* values(int32_t layer, int32_t kv_head, int64_t block) const;

  template <PanelType kType, typename Element, typename Convert>
  void store_as(std::byte* keys,
                std::byte* values,
                int32_t offset,
                const float* k,
                const float* v,
                Convert convert);

  KvLayout layout_;
  PanelLayout key_panel_;
  PanelLayout value_panel_;
  int64_t key_bytes_;
  int64_t value_bytes_;
  std::vector<int64_t> key_offsets_;  // (head_dim) of position 0 in a panel
  Buffer data_;  // keys (layer, block, kv_head, chunk), then values (layer, block, kv_head, chunk)
};

}  // namespace tgi
