// The paged KV cache in panels (panel_layout.h), so that attention runs on the same inner loop as
// matmul. Per layer, block and KV head, for every 16 positions:
//
//   keys    one panel: rows are the 16 positions, columns are head_dim
//   values  value_cols() / 16 panels (rounded up): rows are 16 of a value, columns are the 16
//   positions; none where there are no values, or the first columns of the keys are
//   (KvHeads.keys_only, KvLayout.latent_dim)
//
// Codes of 8 bits (engine/tensor/cache_codes.h) lie where the numbers of a panel of bf16 would, in
// half of its room, and behind each panel of keys, and behind the values of 16 positions, int8 has
// 16 scales, in f32.
//
// Where one of several tokens has a row (KvHeads.tokens_per_row), a block has those rows one behind
// the other, each in the lines of a panel of one position.
//
// Where all layers are alike, those of one layer lie together, block after block. Else those of a
// block do, layer after layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_layout.h"
#include "engine/device/backend.h"
#include "engine/tensor/kv_groups.h"
#include "engine/tensor/tensor.h"

namespace tgi {

class PanelKvCache {
 public:
  static int64_t bytes(const KvLayout& layout);

  // Throws kUnsupported unless the block size is a multiple of 16, kOutOfMemory.
  PanelKvCache(const KvLayout& layout, PairOrder pair_order);

  const KvLayout& layout() const { return layout_; }

  // k: (head_dim), v: (value_cols()), rounded to the cache's type. v is null where there
  // are none.
  void store(KvPlace place,
             int32_t kv_head,
             int32_t block,
             int32_t offset_in_block,
             const float* k,
             const float* v);

  // The key as it is cached, (head_dim). REQUIRES: the cache holds no codes.
  void load_key(
      KvPlace place, int32_t kv_head, int32_t block, int32_t offset_in_block, float* out) const;

  // Fills the cache fields of `out`.
  void describe(KvPlace place, int32_t kv_head, AttentionBlock& out) const;
  void describe_entries(const SeenEntries& entries, AttentionBlock& out) const;
  // A panel of the rows at `positions`, fewer than 16, the others as the first. REQUIRES: a place
  // where one of several tokens has a row.
  void gather_rows(KvPlace place,
                   const int32_t* blocks,
                   std::span<const int64_t> positions,
                   std::byte* panel) const;

  // Of 16 positions of one KV head as they are stored.
  int64_t key_chunk_bytes(KvPlace place) const {
    return at(place).key_bytes / (layout_.block_size / kPanelRows);
  }

 private:
  // Where the keys and values of a layer are.
  struct Layer {
    KvHeads heads;
    PanelLayout key_panel;
    int64_t row_bytes = 0;    // of one position's key by itself
    int64_t key_bytes = 0;    // of one KV head in one block
    int64_t value_bytes = 0;  // likewise
    int64_t keys = 0;         // of the first head in the first block, in bytes from the beginning
    int64_t values = 0;
    int64_t key_step = 0;  // bytes from one block to the next
    int64_t value_step = 0;
    std::vector<int64_t> key_offsets{};  // (head_dim) of position 0 in a panel, in numbers
  };

  // Of 16 positions whose numbers take `bytes` in panels.
  static int64_t chunk_bytes(const KvLayout& layout, int64_t bytes);
  // Bytes of one KV head in one block.
  static int64_t key_bytes(const KvLayout& layout, const KvHeads& heads);
  static int64_t value_bytes(const KvLayout& layout, int32_t value_cols);
  static int64_t layer_bytes(const KvLayout& layout, const KvHeads& heads);  // of one block
  static int64_t block_bytes(const KvLayout& layout);                        // where layers differ

  Layer describe_layer(const KvHeads& heads) const;
  const Layer& at(KvPlace place) const {
    const auto group = layout_.groups.empty() ? 0 : static_cast<size_t>(place.group);
    return layers_[group][static_cast<size_t>(place.layer)];
  }
  // Of a number of a key, from the beginning of its block.
  int64_t key_offset(const Layer& layer, int32_t offset_in_block, int64_t column) const;
  std::byte* data() const { return static_cast<std::byte*>(data_.data()); }

  // What makes an Element of each number of the key, and of the value.
  template <PanelType kType, typename Element, typename ConvertKey, typename ConvertValue>
  void store_as(const Layer& layer,
                std::byte* keys,
                std::byte* values,
                int32_t offset,
                const float* k,
                const float* v,
                ConvertKey convert_key,
                ConvertValue convert_value);
  // Of a place where one of several tokens has a row.
  void store_row(
      const Layer& layer, int32_t kv_head, int32_t block, int32_t offset_in_block, const float* k);
  void store_int8(const Layer& layer,
                  std::byte* keys,
                  std::byte* values,
                  int32_t offset,
                  const float* k,
                  const float* v);

  KvLayout layout_;
  PairOrder pair_order_;
  PanelLayout value_panel_;
  std::vector<std::vector<Layer>> layers_;  // by group; one stands for all where layers are alike
  Buffer data_;
};

}  // namespace tgi
