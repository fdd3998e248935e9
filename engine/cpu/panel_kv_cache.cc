// See panel_kv_cache.h.
#include "engine/cpu/panel_kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "engine/cpu/host_resources.h"
#include "engine/tensor/cache_codes.h"
#include "engine/tensor/float8.h"
#include "engine/tensor/half.h"

namespace tgi {

namespace {

// A smaller cache is a small model's: a few tokens in each of its layers shouldn't take most of it.
constexpr size_t kHugePagesFrom = size_t{128} << 20;

PanelLayout key_panel(const KvLayout& layout, int32_t head_dim, PairOrder pair_order) {
  return {.type = panel_type(layout.dtype), .cols = head_dim, .pair_order = pair_order};
}

PanelLayout value_panel(const KvLayout& layout, PairOrder pair_order) {
  return {.type = panel_type(layout.dtype),
          .cols = kPanelRows,
          .pair_order = pair_order,
          .pair_block = kValuePairBlock};
}

}  // namespace

int64_t PanelKvCache::chunk_bytes(const KvLayout& layout, int64_t bytes) {
  if (!is_cache_code(layout.dtype)) return bytes;
  return bytes / 2 + (layout.dtype == DType::kInt8 ? kPanelRows * int64_t{sizeof(float)} : 0);
}

int64_t PanelKvCache::key_bytes(const KvLayout& layout, const KvHeads& heads) {
  const int64_t panel = key_panel(layout, heads.head_dim, PairOrder::kAdjacent).bytes();
  if (heads.tokens_per_row > 1) {
    return round_up(heads.rows_of_block(layout.block_size) * panel / kPanelRows, 64);
  }
  return layout.block_size / kPanelRows * chunk_bytes(layout, panel);
}

int64_t PanelKvCache::value_bytes(const KvLayout& layout, int32_t value_cols) {
  if (layout.latent_dim > 0 || value_cols == 0) return 0;
  const int64_t num_panels = round_up(value_cols, kPanelRows) / kPanelRows;
  return layout.block_size / kPanelRows *
         chunk_bytes(layout, num_panels * value_panel(layout, PairOrder::kAdjacent).bytes());
}

int64_t PanelKvCache::layer_bytes(const KvLayout& layout, const KvHeads& heads) {
  return heads.num_kv_heads * (key_bytes(layout, heads) + value_bytes(layout, heads.value_cols()));
}

int64_t PanelKvCache::block_bytes(const KvLayout& layout) {
  int64_t largest = 0;
  for (const std::vector<KvHeads>& group : layout.groups) {
    int64_t size = 0;
    for (const KvHeads& heads : group) size += layer_bytes(layout, heads);
    largest = std::max(largest, size);
  }
  return largest;
}

int64_t PanelKvCache::bytes(const KvLayout& layout) {
  if (!layout.groups.empty()) return layout.num_blocks * block_bytes(layout);
  return int64_t{layout.num_layers} * layout.num_blocks *
         layer_bytes(layout, {.num_kv_heads = layout.num_kv_heads, .head_dim = layout.head_dim});
}

PanelKvCache::PanelKvCache(const KvLayout& layout, PairOrder pair_order)
    : layout_(layout), pair_order_(pair_order), value_panel_(value_panel(layout, pair_order)) {
  if (layout.block_size <= 0 || layout.block_size % kPanelRows != 0) {
    throw Error(Code::kUnsupported,
                fmt::format("kv block size {}: the cpu backend needs a multiple of {}",
                            layout.block_size, kPanelRows));
  }
  for (const std::vector<KvHeads>& group : layout.groups) {
    std::vector<Layer>& layers = layers_.emplace_back();
    int64_t offset = 0;
    for (const KvHeads& heads : group) {
      if (heads.tokens_per_row > 1 && is_cache_code(layout.dtype)) {
        throw Error(Code::kUnsupported,
                    fmt::format("--kv-cache-dtype {}: a model whose keys stand for several tokens "
                                "needs bf16, f16 or f32",
                                dtype_name(layout.dtype)));
      }
      Layer layer = describe_layer(heads);
      layer.keys = offset;
      layer.values = offset + heads.num_kv_heads * layer.key_bytes;
      layer.key_step = block_bytes(layout);
      layer.value_step = layer.key_step;
      offset += layer_bytes(layout, heads);
      layers.push_back(std::move(layer));
    }
  }
  if (layout.groups.empty()) {
    const KvHeads heads = {.num_kv_heads = layout.num_kv_heads, .head_dim = layout.head_dim};
    std::vector<Layer>& layers = layers_.emplace_back();
    for (int64_t i = 0; i < layout.num_layers; ++i) {
      Layer layer = describe_layer(heads);
      layer.key_step = heads.num_kv_heads * layer.key_bytes;
      layer.value_step = heads.num_kv_heads * layer.value_bytes;
      layer.keys = i * layout.num_blocks * layer.key_step;
      layer.values = int64_t{layout.num_layers} * layout.num_blocks * layer.key_step +
                     i * layout.num_blocks * layer.value_step;
      layers.push_back(std::move(layer));
    }
  }
  const auto size = static_cast<size_t>(bytes(layout));
  data_ = map_memory(size, "kv cache",
                     size < kHugePagesFrom ? PageSize::kSmall : PageSize::kHugeWhereLarge);
}

PanelKvCache::Layer PanelKvCache::describe_layer(const KvHeads& heads) const {
  Layer out{.heads = heads,
            .key_panel = key_panel(layout_, heads.head_dim, pair_order_),
            .key_bytes = key_bytes(layout_, heads),
            .value_bytes = value_bytes(layout_, heads.value_cols())};
  out.row_bytes = out.key_panel.bytes() / kPanelRows;
  for (int64_t d = 0; d < heads.head_dim; ++d) {
    out.key_offsets.push_back(out.key_panel.offset(0, d) * 8 / out.key_panel.bits());
  }
  return out;
}

void PanelKvCache::describe(KvPlace place, int32_t kv_head, AttentionBlock& out) const {
  const Layer& layer = at(place);
  out.k = data() + layer.keys + kv_head * layer.key_bytes;
  out.v = layer.value_bytes == 0 ? nullptr : data() + layer.values + kv_head * layer.value_bytes;
  out.k_block_stride_bytes = layer.key_step;
  out.v_block_stride_bytes = layer.value_step;
  out.block_size = layout_.block_size;
  out.codes = layout_.dtype == DType::kInt8     ? CacheCodes::kInt8
              : layout_.dtype == DType::kF8E4M3 ? CacheCodes::kF8E4M3
                                                : CacheCodes::kNone;
}

int64_t PanelKvCache::key_offset(const Layer& layer,
                                 int32_t offset_in_block,
                                 int64_t column) const {
  const PanelLayout& panel = layer.key_panel;
  const int64_t step = panel.offset(1, 0) - panel.offset(0, 0);
  const int64_t in_panel = panel.offset(0, column);
  if (layer.heads.tokens_per_row > 1) {
    const int64_t line = step * kPanelRows;
    return offset_in_block / layer.heads.tokens_per_row * layer.row_bytes + in_panel / line * step +
           in_panel % line;
  }
  const int64_t chunk_bytes = layer.key_bytes / (layout_.block_size / kPanelRows);
  return offset_in_block / kPanelRows * chunk_bytes + offset_in_block % kPanelRows * step +
         in_panel;
}

void PanelKvCache::load_key(
    KvPlace place, int32_t kv_head, int32_t block, int32_t offset_in_block, float* out) const {
  const Layer& layer = at(place);
  const std::byte* const keys =
      data() + layer.keys + block * layer.key_step + kv_head * layer.key_bytes;
  for (int64_t d = 0; d < layer.heads.head_dim; ++d) {
    const std::byte* const from = keys + key_offset(layer, offset_in_block, d);
    if (layout_.dtype == DType::kF32) {
      std::memcpy(out + d, from, sizeof(float));
      continue;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, from, sizeof bits);
    out[d] = layout_.dtype == DType::kF16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

void PanelKvCache::describe_entries(const SeenEntries& entries, AttentionBlock& out) const {
  const Layer& layer = at(entries.place);
  out.entries = data() + layer.keys;
  out.entry_block_stride_bytes = layer.key_step;
  out.entry_bytes = layer.row_bytes;
  out.tokens_per_entry = entries.tokens_per_entry;
}

void PanelKvCache::gather_rows(KvPlace place,
                               const int32_t* blocks,
                               std::span<const int64_t> positions,
                               std::byte* panel) const {
  const Layer& layer = at(place);
  const int64_t step = layer.key_panel.offset(1, 0) - layer.key_panel.offset(0, 0);
  const int64_t num_lines = layer.row_bytes / step;
  for (int64_t i = 0; i < kPanelRows; ++i) {
    const int64_t position = positions[i < std::ssize(positions) ? static_cast<size_t>(i) : 0];
    const std::byte* const row =
        data() + layer.keys + blocks[position / layout_.block_size] * layer.key_step +
        position % layout_.block_size / layer.heads.tokens_per_row * layer.row_bytes;
    for (int64_t line = 0; line < num_lines; ++line) {
      std::memcpy(panel + (line * kPanelRows + i) * step, row + line * step,
                  static_cast<size_t>(step));
    }
  }
}

// To the next position in a panel of keys, and to the next column in one of values, in numbers.
template <PanelType kType>
constexpr int64_t kStep = (PanelLayout{.type = kType}.offset(1, 0) -
                           PanelLayout{.type = kType}.offset(0, 0)) *
                          8 / PanelLayout{.type = kType}.bits();

template <PanelType kType, typename Element, typename ConvertKey, typename ConvertValue>
void PanelKvCache::store_as(const Layer& layer,
                            std::byte* keys,
                            std::byte* values,
                            int32_t offset,
                            const float* k,
                            const float* v,
                            ConvertKey convert_key,
                            ConvertValue convert_value) {
  const auto put = [](std::byte* to, int64_t at, Element element) {
    std::memcpy(to + at * int64_t{sizeof(Element)}, &element, sizeof element);
  };
  constexpr int64_t kBits = PanelLayout{.type = kType}.bits();
  const int64_t head_dim = layer.heads.head_dim;
  const int64_t lane = offset % kPanelRows;
  for (int64_t d = 0; d < head_dim; ++d) {
    put(keys, layer.key_offsets[static_cast<size_t>(d)] + lane * kStep<kType>, convert_key(k[d]));
  }
  if (v == nullptr) return;
  int64_t at = value_panel_.offset(0, lane) * 8 / kBits;
  const int64_t panel_size = value_panel_.bytes() * 8 / kBits;
  const int64_t value_cols = layer.heads.value_cols();
  int64_t d = 0;
  for (; d + kPanelRows <= value_cols; d += kPanelRows, at += panel_size) {
    for (int64_t i = 0; i < kPanelRows; ++i)
      put(values, at + i * kStep<kType>, convert_value(v[d + i]));
  }
  for (int64_t i = 0; d + i < value_cols; ++i)
    put(values, at + i * kStep<kType>, convert_value(v[d + i]));
}

void PanelKvCache::store_int8(const Layer& layer,
                              std::byte* keys,
                              std::byte* values,
                              int32_t offset,
                              const float* k,
                              const float* v) {
  const auto scale_of = [&](const float* row, int32_t cols) {
    return row == nullptr ? Int8Scale() : int8_scale({row, static_cast<size_t>(cols)});
  };
  const auto coded_by = [](const Int8Scale& scale) {
    return [scale](float x) { return static_cast<int8_t>(scale.code(x)); };
  };
  const Int8Scale key_scale = scale_of(k, layer.heads.head_dim);
  const Int8Scale value_scale = scale_of(v, layer.heads.value_cols());
  store_as<PanelType::kBF16, int8_t>(layer, keys, values, offset, k, v, coded_by(key_scale),
                                     coded_by(value_scale));
  const int64_t num_chunks = layout_.block_size / kPanelRows;
  const auto put = [&](std::byte* chunk, int64_t bytes, float scale) {
    const int64_t lane = offset % kPanelRows;
    std::memcpy(chunk + bytes / num_chunks - (kPanelRows - lane) * int64_t{sizeof(float)}, &scale,
                sizeof scale);
  };
  put(keys, layer.key_bytes, key_scale.scale);
  if (v != nullptr) put(values, layer.value_bytes, value_scale.scale);
}

void PanelKvCache::store_row(
    const Layer& layer, int32_t kv_head, int32_t block, int32_t offset_in_block, const float* k) {
  std::byte* const keys = data() + layer.keys + block * layer.key_step + kv_head * layer.key_bytes;
  for (int64_t d = 0; d < layer.heads.head_dim; ++d) {
    std::byte* const to = keys + key_offset(layer, offset_in_block, d);
    if (layout_.dtype == DType::kF32) {
      std::memcpy(to, k + d, sizeof(float));
      continue;
    }
    const uint16_t bits = layout_.dtype == DType::kF16 ? f32_to_f16(k[d]) : f32_to_bf16(k[d]);
    std::memcpy(to, &bits, sizeof bits);
  }
}

void PanelKvCache::store(KvPlace place,
                         int32_t kv_head,
                         int32_t block,
                         int32_t offset_in_block,
                         const float* k,
                         const float* v) {
  const int64_t chunk = offset_in_block / kPanelRows;
  const int64_t num_chunks = layout_.block_size / kPanelRows;
  const Layer& layer = at(place);
  if (layer.heads.tokens_per_row > 1) return store_row(layer, kv_head, block, offset_in_block, k);
  std::byte* const to_k = data() + layer.keys + block * layer.key_step + kv_head * layer.key_bytes +
                          chunk * (layer.key_bytes / num_chunks);
  std::byte* const to_v = data() + layer.values + block * layer.value_step +
                          kv_head * layer.value_bytes + chunk * (layer.value_bytes / num_chunks);
  const auto store_with = [&]<PanelType kType, typename Element>(auto convert) {
    store_as<kType, Element>(layer, to_k, to_v, offset_in_block, k, v, convert, convert);
  };
  switch (layout_.dtype) {
    case DType::kF32:
      return store_with.operator()<PanelType::kF32, float>([](float x) { return x; });
    case DType::kF16:
      return store_with.operator()<PanelType::kF16, uint16_t>(f32_to_f16);
    case DType::kBF16:
      return store_with.operator()<PanelType::kBF16, uint16_t>(f32_to_bf16);
    case DType::kF8E4M3:
      return store_with.operator()<PanelType::kBF16, uint8_t>(f32_to_e4m3);
    case DType::kInt8:
      return store_int8(layer, to_k, to_v, offset_in_block, k, v);
  }
}

}  // namespace tgi
