// See panel_kv_cache.h.
#include "engine/cpu/panel_kv_cache.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "engine/cpu/host_resources.h"
#include "engine/tensor/half.h"

namespace tgi {

namespace {

PanelLayout key_panel(const KvLayout& layout, PairOrder pair_order) {
  return {.type = panel_type(layout.dtype), .cols = layout.head_dim, .pair_order = pair_order};
}

PanelLayout value_panel(const KvLayout& layout, PairOrder pair_order) {
  return {.type = panel_type(layout.dtype),
          .cols = kPanelRows,
          .pair_order = pair_order,
          .pair_block = kValuePairBlock};
}

}  // namespace

int64_t PanelKvCache::key_bytes(const KvLayout& layout) {
  return layout.block_size / kPanelRows * key_panel(layout, PairOrder::kAdjacent).bytes();
}

int64_t PanelKvCache::value_bytes(const KvLayout& layout) {
  if (layout.latent_dim > 0) return 0;
  const int64_t num_panels = round_up(layout.head_dim, kPanelRows) / kPanelRows;
  return layout.block_size / kPanelRows * num_panels *
         value_panel(layout, PairOrder::kAdjacent).bytes();
}

int64_t PanelKvCache::bytes(const KvLayout& layout) {
  return int64_t{layout.num_layers} * layout.num_blocks * layout.num_kv_heads *
         (key_bytes(layout) + value_bytes(layout));
}

PanelKvCache::PanelKvCache(const KvLayout& layout, PairOrder pair_order)
    : layout_(layout),
      key_panel_(key_panel(layout, pair_order)),
      value_panel_(value_panel(layout, pair_order)),
      key_bytes_(key_bytes(layout)),
      value_bytes_(value_bytes(layout)) {
  if (layout.block_size <= 0 || layout.block_size % kPanelRows != 0) {
    throw Error(Code::kUnsupported,
                fmt::format("kv block size {}: the cpu backend needs a multiple of {}",
                            layout.block_size, kPanelRows));
  }
  for (int64_t d = 0; d < layout.head_dim; ++d) key_offsets_.push_back(key_panel_.offset(0, d));
  data_ = map_memory(static_cast<size_t>(bytes(layout)), "kv cache");
}

std::byte* PanelKvCache::keys(int32_t layer, int32_t kv_head, int64_t block) const {
  const int64_t index =
      (int64_t{layer} * layout_.num_blocks + block) * layout_.num_kv_heads + kv_head;
  return static_cast<std::byte*>(data_.data()) + index * key_bytes_;
}

std::byte* PanelKvCache::values(int32_t layer, int32_t kv_head, int64_t block) const {
  const int64_t all = int64_t{layout_.num_layers} * layout_.num_blocks * layout_.num_kv_heads;
  const int64_t index =
      (int64_t{layer} * layout_.num_blocks + block) * layout_.num_kv_heads + kv_head;
  return static_cast<std::byte*>(data_.data()) + all * key_bytes_ + index * value_bytes_;
}

void PanelKvCache::describe(int32_t layer, int32_t kv_head, AttentionBlock& out) const {
  out.k = keys(layer, kv_head, 0);
  out.v = layout_.latent_dim > 0 ? nullptr : values(layer, kv_head, 0);
  out.k_block_stride_bytes = layout_.num_kv_heads * key_bytes_;
  out.v_block_stride_bytes = layout_.num_kv_heads * value_bytes_;
  out.block_size = layout_.block_size;
}

// To the next position in a panel of keys, and to the next column in one of values.
template <PanelType kType>
constexpr int64_t kStep =
    PanelLayout{.type = kType}.offset(1, 0) - PanelLayout{.type = kType}.offset(0, 0);

template <PanelType kType, typename Element, typename Convert>
void PanelKvCache::store_as(std::byte* keys,
                            std::byte* values,
                            int32_t offset,
                            const float* k,
                            const float* v,
                            Convert convert) {
  const auto put = [&](std::byte* to, float value) {
    const Element element = convert(value);
    std::memcpy(to, &element, sizeof element);
  };
  const int64_t lane = offset % kPanelRows;
  std::byte* const to_k = keys + lane * kStep<kType>;
  for (int64_t d = 0; d < layout_.head_dim; ++d) {
    put(to_k + key_offsets_[static_cast<size_t>(d)], k[d]);
  }
  if (v == nullptr) return;
  std::byte* to_v = values + value_panel_.offset(0, lane);
  const int64_t panel_bytes = value_panel_.bytes();
  int64_t d = 0;
  for (; d + kPanelRows <= layout_.head_dim; d += kPanelRows, to_v += panel_bytes) {
    for (int64_t i = 0; i < kPanelRows; ++i) put(to_v + i * kStep<kType>, v[d + i]);
  }
  for (int64_t i = 0; d + i < layout_.head_dim; ++i) put(to_v + i * kStep<kType>, v[d + i]);
}

void PanelKvCache::store(int32_t layer,
                         int32_t kv_head,
                         int32_t block,
                         int32_t offset_in_block,
                         const float* k,
                         const float* v) {
  const int64_t chunk = offset_in_block / kPanelRows;
  const int64_t num_chunks = layout_.block_size / kPanelRows;
  std::byte* const to_k = keys(layer, kv_head, block) + chunk * (key_bytes_ / num_chunks);
  std::byte* const to_v = values(layer, kv_head, block) + chunk * (value_bytes_ / num_chunks);
  switch (layout_.dtype) {
    case DType::kF32:
      return store_as<PanelType::kF32, float>(to_k, to_v, offset_in_block, k, v,
                                              [](float x) { return x; });
    case DType::kF16:
      return store_as<PanelType::kF16, uint16_t>(to_k, to_v, offset_in_block, k, v, f32_to_f16);
    case DType::kBF16:
      return store_as<PanelType::kBF16, uint16_t>(to_k, to_v, offset_in_block, k, v, f32_to_bf16);
    case DType::kF8E4M3:
      TGI_CHECK(false);  // refused when the cache was planned
  }
}

}  // namespace tgi
