// Sixteen rows of a stored matrix into one panel: bring a stretch of each row to the panel's type,
// then turn rows into lanes. Done once, at load.
#pragma once

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

inline constexpr int64_t kPackCols = 128;  // columns at a time: sixteen rows of them fit in L1

template <typename V>
V load_as_f32(const std::byte* from, DType dtype) {
  if (dtype == DType::kBF16) return V::load_bf16(from);
  if (dtype == DType::kF16) return V::load_f16(from);
  return V::load(reinterpret_cast<const float*>(from));
}

template <typename V, DType kTo>
void store_from_f32(V value, std::byte* to) {
  if constexpr (kTo == DType::kBF16) value.store_bf16(to);
  if constexpr (kTo == DType::kF16) value.store_f16(to);
  if constexpr (kTo == DType::kF32) value.store(reinterpret_cast<float*>(to));
}

template <typename Unit>
[[gnu::always_inline]] inline void copy_strided(std::byte* to,
                                                const std::byte* from,
                                                int64_t stride,
                                                int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    __builtin_memcpy(to + i * static_cast<int64_t>(sizeof(Unit)),
                     from + i * stride * static_cast<int64_t>(sizeof(Unit)), sizeof(Unit));
  }
}

// `count` elements from column `col` on, in the panel's type, zeros behind them up to kPackCols.
template <typename V, DType kTo>
void stage_row(const SourceRow& row, int64_t col, int64_t count, std::byte* to) {
  constexpr auto kToSize = static_cast<int64_t>(dtype_size(kTo));
  __builtin_memset(to, 0, kPackCols * kToSize);
  if (row.data == nullptr) return;
  const int64_t size = row.dtype == DType::kF32 ? 4 : 2;
  const std::byte* from = row.data + col * row.col_stride * size;

  alignas(64) std::byte raw[kPackCols * 4] = {};
  std::byte* const gathered = row.dtype == kTo ? to : raw;
  if (row.col_stride == 1) {
    __builtin_memcpy(gathered, from, static_cast<size_t>(count * size));
  } else if (size == 4) {
    copy_strided<uint32_t>(gathered, from, row.col_stride, count);
  } else {
    copy_strided<uint16_t>(gathered, from, row.col_stride, count);
  }
  if (row.dtype == kTo) return;
  for (int64_t i = 0; i < count; i += 16) {
    store_from_f32<V, kTo>(load_as_f32<V>(raw + i * size, row.dtype), to + i * kToSize);
  }
}

// Writes `num_bytes` of the panel: 16 words of a row become one of sixteen 64-byte columns. Each of
// the rows must be readable to the next multiple of 64 bytes.
template <typename V, DType kTo>
void transpose_rows(const std::byte* (&rows)[16], int64_t num_bytes, std::byte* out) {
  constexpr int64_t kBlock = 16 * 64;
  for (int64_t done = 0; done < num_bytes; done += kBlock) {
    alignas(64) std::byte partial[kBlock];
    const bool whole = num_bytes - done >= kBlock;
    std::byte* const to = whole ? out + done : partial;
    V::transpose_words(rows, to);
    if constexpr (kTo == DType::kF16) {
      for (int64_t column = 0; column < 16; ++column) V::split_pairs(to + column * 64);
    }
    if (!whole) __builtin_memcpy(out + done, partial, static_cast<size_t>(num_bytes - done));
    for (const std::byte*& row : rows) row += 64;
  }
}

// Turns pairs of bf16 lines from adjacent into even-odd order, block by block.
inline constexpr int64_t kPairBlockBytes = kPairBlock * kPanelRows * 2;

template <typename V>
void reorder_pairs(std::byte* lines) {
  uint32_t from[kPairBlockBytes / 4];
  uint32_t to[kPairBlockBytes / 4];
  __builtin_memcpy(from, lines, sizeof from);
  for (int64_t pair = 0; pair < kPairBlock / 4; ++pair) {
    for (int64_t lane = 0; lane < kPanelRows; ++lane) {
      const uint32_t first = from[2 * pair * kPanelRows + lane];
      const uint32_t second = from[(2 * pair + 1) * kPanelRows + lane];
      to[pair * kPanelRows + lane] = first << 16 | (second & 0xFFFFU);
      to[(kPairBlock / 4 + pair) * kPanelRows + lane] = (first & 0xFFFF0000U) | second >> 16;
    }
  }
  __builtin_memcpy(lines, to, sizeof to);
}

template <typename V, DType kTo, PairOrder kOrder = PairOrder::kAdjacent>
void pack_panel(const PackPanel& panel) {
  constexpr auto kToSize = static_cast<int64_t>(dtype_size(kTo));
  constexpr int64_t kRowBytes = kPackCols * kToSize;
  alignas(64) std::byte staged[16 * kRowBytes];
  std::byte* out = panel.out;
  const int64_t cols = panel.layout.cols;
  for (int64_t col = 0; col < cols; col += kPackCols) {
    const int64_t count = cols - col < kPackCols ? cols - col : kPackCols;
    const std::byte* rows[16];
    for (size_t row = 0; row < 16; ++row) {
      const SourceRow& source = panel.rows[row];
      if (source.dtype == kTo && source.col_stride == 1 && count == kPackCols &&
          source.data != nullptr) {
        rows[row] = source.data + col * kToSize;
      } else {
        rows[row] = staged + static_cast<int64_t>(row) * kRowBytes;
        stage_row<V, kTo>(source, col, count, staged + static_cast<int64_t>(row) * kRowBytes);
      }
    }
    const int64_t num_bytes = PanelLayout{.type = panel_type(kTo), .cols = count}.data_bytes();
    transpose_rows<V, kTo>(rows, num_bytes, out);
    if constexpr (kOrder == PairOrder::kEvenOdd) {
      static_assert(kTo == DType::kBF16);
      for (int64_t i = 0; i < num_bytes; i += kPairBlockBytes) reorder_pairs<V>(out + i);
    }
    out += num_bytes;
  }
}

}  // namespace tgi
