// Matmul of many rows on the matrix unit: up to 32 rows times two panels at a time, whose sums stay
// in four tiles while x and the panels pass by. The same bits as DotPairs and DotInt.
//
// May read up to 31 rows of x behind the last one; what they give is dropped.
#pragma once

#include "engine/cpu/kernels/amx_unit.h"
#include "engine/cpu/kernels/dot_int.h"
#include "engine/cpu/kernels/dot_pairs.h"
#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

inline constexpr int64_t kAmxKBlock = 1024;  // columns: two panels of them stay in the caches

// The corner of `out` that four tiles make, by way of memory where a tile hangs over its edge.
template <typename V>
struct AmxCorner {
  const MatmulBlock& block;
  int64_t row;
  int64_t panel;

  int64_t height() const { return block.num_rows - row; }
  int64_t width(int64_t j) const { return block.num_outputs - (panel + j) * 16; }
  float* at(int64_t i, int64_t j) const {
    return block.out + (row + i * 16) * block.out_stride + (panel + j) * 16;
  }
};

// x of a bf16 matmul: as bf16, columns in order.
template <typename V>
struct AmxBf16X {
  static int64_t x_bytes(int64_t k, int64_t /*group_size*/) { return round_up(k, kPairBlock) * 2; }
  static void prepare(const float* x, int64_t k, int64_t /*group_size*/, std::byte* out) {
    const int64_t padded = round_up(k, kPairBlock);
    // The product turns denormals to 0 before they can be rounded up to a normal number.
    for (int64_t i = 0; i < padded; i += 16) {
      (V::load_first(x + i, k - i) * V::set1(1.0F)).store_bf16(out + i * 2);
    }
  }
};

template <typename V, typename Unit>
class AmxBf16 {
 public:
  static void run(const MatmulBlock& block) {
    Unit unit{TileConfig(64)};
    for (int64_t k = 0; k < block.k; k += kAmxKBlock) {
      const int64_t end = k + kAmxKBlock < block.k ? k + kAmxKBlock : block.k;
      for (int64_t panel = 0; panel < block.num_panels; panel += 2) {
        const bool one_panel = panel + 1 == block.num_panels;
        for (int64_t row = 0; row < block.num_rows; row += 32) {
          const AmxCorner<V> corner{block, row, panel};
          const bool one_row = corner.height() <= 16;
          if (one_panel) {
            one_row ? tiles<1, 1>(unit, corner, k, end) : tiles<2, 1>(unit, corner, k, end);
          } else {
            one_row ? tiles<1, 2>(unit, corner, k, end) : tiles<2, 2>(unit, corner, k, end);
          }
        }
      }
    }
  }

 private:
  // kRows tiles of 16 rows times kPanels panels.
  template <int kRows, int kPanels>
  static void tiles(Unit& unit, const AmxCorner<V>& corner, int64_t k, int64_t end) {
    const MatmulBlock& block = corner.block;
    begin<0>(unit, corner, 0, 0, k);
    if constexpr (kPanels == 2) begin<1>(unit, corner, 0, 1, k);
    if constexpr (kRows == 2) begin<2>(unit, corner, 1, 0, k);
    if constexpr (kRows == 2 && kPanels == 2) begin<3>(unit, corner, 1, 1, k);
    const std::byte* x = block.x + corner.row * block.x_stride_bytes;
    const std::byte* lines = block.panels + corner.panel * block.panel_bytes;
    for (int64_t i = k; i < end; i += kPairBlock) {
      unit.template load<4>(x + i * 2, block.x_stride_bytes);
      unit.template load<6>(lines + i * 32, 64);
      unit.template dot_bf16<0>();
      if constexpr (kPanels == 2) {
        unit.template load<7>(lines + block.panel_bytes + i * 32, 64);
        unit.template dot_bf16<1>();
      }
      if constexpr (kRows == 2) {
        unit.template load<5>(x + 16 * block.x_stride_bytes + i * 2, block.x_stride_bytes);
        unit.template dot_bf16<2>();
        if constexpr (kPanels == 2) unit.template dot_bf16<3>();
      }
    }
    finish<0>(unit, corner, 0, 0, end);
    if constexpr (kPanels == 2) finish<1>(unit, corner, 0, 1, end);
    if constexpr (kRows == 2) finish<2>(unit, corner, 1, 0, end);
    if constexpr (kRows == 2 && kPanels == 2) finish<3>(unit, corner, 1, 1, end);
  }

  static bool whole(const AmxCorner<V>& corner, int64_t i, int64_t j) {
    return corner.height() - i * 16 >= 16 && corner.width(j) >= 16;
  }

  template <int kTile>
  static void begin(Unit& unit, const AmxCorner<V>& corner, int64_t i, int64_t j, int64_t k) {
    if (k == 0) return unit.template zero<kTile>();
    const int64_t stride = corner.block.out_stride;
    if (whole(corner, i, j)) return unit.template load<kTile>(corner.at(i, j), stride * 4);
    alignas(64) float part[256] = {};
    for (int64_t r = 0; r < 16 && i * 16 + r < corner.height(); ++r) {
      V::load_first(corner.at(i, j) + r * stride, corner.width(j)).store(part + r * 16);
    }
    unit.template load<kTile>(part, 64);
  }

  template <int kTile>
  static void finish(Unit& unit, const AmxCorner<V>& corner, int64_t i, int64_t j, int64_t end) {
    const MatmulBlock& block = corner.block;
    const bool add_bias = block.bias != nullptr && end == block.k;
    if (!add_bias && whole(corner, i, j)) {
      return unit.template store<kTile>(corner.at(i, j), block.out_stride * 4);
    }
    alignas(64) float part[256];
    unit.template store<kTile>(part, 64);
    const int64_t width = corner.width(j);
    for (int64_t r = 0; r < 16 && i * 16 + r < corner.height(); ++r) {
      V sum = V::load(part + r * 16);
      if (add_bias) sum = sum + V::load_first(block.bias + (corner.panel + j) * 16, width);
      sum.store_first(corner.at(i, j) + r * block.out_stride, width);
    }
  }
};

// Groups of columns are summed one by one in tiles of int32, then scaled and added in memory. x as
// DotInt prepares it when Ints takes a byte a column.
template <typename Ints, typename Unit, PanelType kType>
class AmxInt {
  using V = typename Ints::V;
  static_assert(Ints::kXBytes == 1);

 public:
  static void run(const MatmulBlock& block) {
    const int64_t step = block.group_size % 64 == 0 ? 64 : 32;  // columns of a tile
    Unit unit{TileConfig(static_cast<int>(step))};
    const int64_t padded = round_up(block.k, block.group_size);
    for (int64_t panel = 0; panel < block.num_panels; panel += 2) {
      for (int64_t begin = 0; begin < padded; begin += block.group_size) {
        // Bytes of this group of both panels, unpacked where they were halves.
        alignas(64) std::byte unpacked[2][256 * 16];
        const std::byte* lines[2] = {nullptr, nullptr};
        for (int64_t j = 0; j < 2 && panel + j < block.num_panels; ++j) {
          lines[j] = bytes_of_group(block, panel + j, begin, unpacked[j]);
        }
        for (int64_t row = 0; row < block.num_rows; row += 32) {
          group(unit, AmxCorner<V>{block, row, panel}, begin, step, lines);
        }
      }
    }
  }

 private:
  static PanelLayout layout(const MatmulBlock& block) {
    return {.type = kType, .cols = block.k, .group_size = block.group_size, .head = block.head};
  }

  static const std::byte* bytes_of_group(const MatmulBlock& block,
                                         int64_t panel,
                                         int64_t begin,
                                         std::byte* unpacked) {
    const std::byte* lines =
        block.panels + panel * block.panel_bytes + layout(block).offset(0, begin);
    if constexpr (kType == PanelType::kInt8) return lines;
    for (int64_t i = 0; i < block.group_size / 8; ++i) {
      for (int64_t byte = 0; byte < 64; ++byte) {
        const std::byte both = lines[i * 64 + byte];
        unpacked[2 * i * 64 + byte] = both & std::byte{15};
        unpacked[(2 * i + 1) * 64 + byte] = both >> 4;
      }
    }
    return unpacked;
  }

  static void group(Unit& unit,
                    const AmxCorner<V>& corner,
                    int64_t begin,
                    int64_t step,
                    const std::byte* const (&lines)[2]) {
    const MatmulBlock& block = corner.block;
    const bool two_panels = lines[1] != nullptr;
    const bool two_rows = corner.height() > 16;
    const std::byte* x = block.x + corner.row * block.x_stride_bytes + begin;
    unit.template zero<0>();
    unit.template zero<1>();
    unit.template zero<2>();
    unit.template zero<3>();
    for (int64_t i = 0; i < block.group_size; i += step) {
      unit.template load<4>(x + i, block.x_stride_bytes);
      unit.template load<6>(lines[0] + i * 16, 64);
      unit.template dot_int8<0>();
      if (two_panels) {
        unit.template load<7>(lines[1] + i * 16, 64);
        unit.template dot_int8<1>();
      }
      if (two_rows) {
        unit.template load<5>(x + 16 * block.x_stride_bytes + i, block.x_stride_bytes);
        unit.template dot_int8<2>();
        if (two_panels) unit.template dot_int8<3>();
      }
    }
    alignas(64) int32_t sums[32 * 32];
    unit.template store<0>(sums, 128);
    unit.template store<1>(sums + 16, 128);
    unit.template store<2>(sums + 16 * 32, 128);
    unit.template store<3>(sums + 16 * 32 + 16, 128);
    scale(corner, begin, sums);
  }

  static void scale(const AmxCorner<V>& corner, int64_t begin, int32_t* sums) {
    const MatmulBlock& block = corner.block;
    const int64_t num_groups = round_up(block.k, block.group_size) / block.group_size;
    const int64_t group = begin / block.group_size;
    const int64_t x_scales = num_groups * block.group_size;
    const int64_t panel_scales = layout(block).scale_offset(0, group);
    const int64_t panel_zeros = layout(block).zero_offset(0, group);
    for (int64_t r = 0; r < 32 && r < corner.height(); ++r) {
      const std::byte* x = block.x + (corner.row + r) * block.x_stride_bytes + x_scales;
      const V x_scale = V::set1(reinterpret_cast<const float*>(x)[group]);
      const int32_t start = reinterpret_cast<const int32_t*>(x + num_groups * 4)[group];
      for (int64_t j = 0; j < 2 && corner.panel + j < block.num_panels; ++j) {
        const std::byte* panel = block.panels + (corner.panel + j) * block.panel_bytes;
        const std::byte* scales = panel + panel_scales;
        const V w_scale = block.head.wide_scales ? V::load(reinterpret_cast<const float*>(scales))
                                                 : V::load_bf16(scales);
        int32_t* const from = sums + r * 32 + j * 16;
        for (int lane = 0; lane < 16; ++lane) from[lane] += start;
        float* const to = corner.at(0, j) + r * block.out_stride;
        const int64_t width = corner.width(j);
        V sum = begin == 0 ? V::zero() : V::load_first(to, width);
        V total = V::from_ints(from);
        if (block.head.zero_points) {
          total =
              V::fma(V::load_bf16(panel + panel_zeros), V::set1(static_cast<float>(start)), total);
        }
        sum = V::fma(total, w_scale * x_scale, sum);
        if (block.bias != nullptr && group + 1 == num_groups) {
          sum = sum + V::load_first(block.bias + (corner.panel + j) * 16, width);
        }
        sum.store_first(to, width);
      }
    }
  }
};

}  // namespace tgi
