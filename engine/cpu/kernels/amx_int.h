// Matmul of many rows with panels of integers on the matrix unit: the same bits as DotInt.
//
// 32 rows times two panels at a time. The products of a group of columns are summed in four tiles
// of int32, stored to memory, and added to sums of f32 with the group's scales; all of that stays
// in the first-level cache. It is the conversion that limits, not the tiles: with groups of 64
// columns it takes as long as they do. The panels are first turned into signed bytes, a block of
// columns at a time for all rows, which saves the conversion an addition for each sum.
//
// May read up to 31 rows of x behind the last one; what they give is dropped.
#pragma once

#include "engine/cpu/kernels/amx_sums.h"
#include "engine/cpu/kernels/amx_unit.h"
#include "engine/cpu/kernels/dot_int.h"
#include "engine/cpu/kernels/head_values.h"
#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

inline constexpr int64_t kAmxIntCols = 1024;  // of a block, at most: two panels' bytes are 32 KiB

// x as DotInt prepares it.
template <typename Ints, typename Unit, PanelType kType>
class AmxInt {
  using V = typename Ints::V;
  using Sums = AmxSums<V, Unit>;
  static constexpr bool kIsMxfp4 = kType == PanelType::kMxfp4;
  static constexpr int kOffset = DotInt<Ints, kType>::kOffset;
  static constexpr int kUpperBits = upper_bits(kType);
  enum class Extra : uint8_t { kNone, kZeroPoints, kMinima };

 public:
  static void run(const MatmulBlock& block) {
    AmxInt matmul(block);
    for_amx_parts<Sums::kRows, 2 * Sums::kPairs>(
        block, matmul.num_groups_, kMatmulPartBytes / block.group_size, [&](const AmxPart& part) {
          for (int64_t panel = part.first_panel; panel < part.end_panel; panel += 2) {
            matmul.two_panels(part, panel);
          }
        });
  }

 private:
  explicit AmxInt(const MatmulBlock& block)
      : block_(block),
        group_size_(block.group_size),
        num_groups_(round_up(block.k, block.group_size) / block.group_size),
        group_bytes_(block.group_size * kPanelRows *
                     (kType == PanelType::kInt8 ? 8 : 4 + kUpperBits) / 8),
        head_bytes_(block.head.bytes()),
        head_groups_(block.head.num_groups()),
        step_(block.group_size % 64 == 0 ? 64 : 32),
        unit_(TileConfig(static_cast<int>(step_))) {}

  // See engine/cpu/panel_layout.h.
  int64_t head_at(int64_t group) const {
    return group / head_groups_ * (head_groups_ * group_bytes_ + head_bytes_);
  }
  int64_t lines_at(int64_t group) const {
    return head_at(group) + head_bytes_ + group % head_groups_ * group_bytes_;
  }

  void two_panels(const AmxPart& part, int64_t panel) {
    row_ = part.row;
    num_rows_ = part.num_rows;
    pair_ = part.pair(panel);
    panels_[0] = block_.panels + panel * block_.panel_bytes;
    two_panels_ = panel + 1 < block_.num_panels;
    panels_[1] = panels_[0] + (two_panels_ ? block_.panel_bytes : 0);
    const int64_t groups = kAmxIntCols / group_size_;
    for (int64_t begin = part.begin; begin < part.end; begin += groups) {
      const int64_t end = begin + groups < part.end ? begin + groups : part.end;
      unpack(begin, end);
      // The first tiles bring what will be unpacked next: with few rows that takes as long as they
      // do.
      ahead_ = lines_of(end < part.end ? AmxPart::Place{panel, end} : part.after(panel));
      num_ahead_ = ahead_ != nullptr ? end - begin : 0;
      for (int64_t r = 0; r < num_rows_; r += 32) tiles(r, begin, end);
    }
    if (part.is_last()) sums_.store(block_, row_, num_rows_, panel, pair_);
  }

  const std::byte* lines_of(const AmxPart::Place& place) const {
    if (place.panel >= block_.num_panels) return block_.next_panels;
    return block_.panels + place.panel * block_.panel_bytes + lines_at(place.begin);
  }

  // Groups [begin, end) of both panels as signed bytes, lines of 64 as in an int8 panel.
  void unpack(int64_t begin, int64_t end) {
    const int64_t bytes = group_bytes_;
    // With minima panels of few bits hold the integers themselves.
    const int offset = is_narrow_integer(kType) && block_.head.minima ? 0 : kOffset;
    for (int64_t j = 0; j < (two_panels_ ? 2 : 1); ++j) {
      const std::byte* const from = panels_[j];
      std::byte* to = bytes_ + j * kAmxIntCols * kPanelRows;
      for (int64_t group = begin; group < end; ++group) {
        const std::byte* const lines = from + lines_at(group);
        if constexpr (kUpperBits > 0) {
          to = unpack_upper(lines, bytes, offset, to);
          continue;
        }
        for (int64_t i = 0; i < bytes; i += 64) {
          if constexpr (kType == PanelType::kInt8) {
            Ints::Lines::load(lines + i).minus(offset).store(to);
            to += 64;
          } else {
            const auto both = Ints::Lines::load(lines + i);
            integers(both.lower(), offset).store(to);
            integers(both.upper(), offset).store(to + 64);
            to += 128;
          }
        }
      }
    }
  }

  // Of one group; returns where the next one goes.
  static std::byte* unpack_upper(const std::byte* lines, int64_t bytes, int offset, std::byte* to) {
    constexpr int kCount = upper_line_cols(kType) / 8;  // of lines with lower bits
    for (const std::byte* const end = lines + bytes; lines < end; lines += (kCount + 1) * 64) {
      const auto upper = Ints::Lines::load(lines);
      unrolled_types<kCount>(TGI_UNROLLED_TYPES(i) {
        const auto both = Ints::Lines::load(lines + (i.value + 1) * 64);
        constexpr int kPlace = 2 * i.value;
        both.lower().template with_upper<kUpperBits, kPlace>(upper).minus(offset).store(to);
        both.upper().template with_upper<kUpperBits, kPlace + 1>(upper).minus(offset).store(to +
                                                                                            64);
        to += 128;
      });
    }
    return to;
  }

  typename Ints::Lines integers(const typename Ints::Lines& halves, int offset) const {
    if constexpr (kIsMxfp4) return halves.looked_up(kMxfp4Bytes).minus(offset);
    if constexpr (kType == PanelType::kTable4) {
      return halves.looked_up(kCodeTables[static_cast<int>(block_.head.table)]).minus(offset);
    }
    return halves.minus(offset);
  }

  // Sums of rows [row, row + 32) += their products with groups [begin, end) of both panels.
  void tiles(int64_t row, int64_t begin, int64_t end) {
    const int64_t stride = block_.x_stride_bytes;
    const int64_t step = step_;
    const int64_t group_size = group_size_;
    const int64_t count = num_rows_ - row < 32 ? num_rows_ - row : 32;
    const bool two_panels = two_panels_;
    const bool two_rows = count > 16;
    const std::byte* const x = block_.x + (row_ + row) * stride;
    const std::byte* lines = bytes_;
    float* const sums = sums_.of(row, pair_);
    if (begin == 0) __builtin_memset(sums, 0, 32 * 32 * sizeof(float));
    for (int64_t group = begin; group < end; ++group) {
      unit_.template zero<0>();
      unit_.template zero<1>();
      unit_.template zero<2>();
      unit_.template zero<3>();
      const std::byte* from = x + group * group_size;
      for (int64_t i = 0; i < group_size; i += step, from += step, lines += step * kPanelRows) {
        unit_.template load<4>(from, stride);
        unit_.template load<6>(lines, 64);
        unit_.template dot_int8<0>();
        if (two_panels) {
          unit_.template load<7>(lines + kAmxIntCols * kPanelRows, 64);
          unit_.template dot_int8<1>();
        }
        if (two_rows) {
          unit_.template load<5>(from + 16 * stride, stride);
          unit_.template dot_int8<2>();
          if (two_panels) unit_.template dot_int8<3>();
        }
      }
      unit_.template store<0>(products_, 128);
      unit_.template store<1>(products_ + 16, 128);
      unit_.template store<2>(products_ + 16 * 32, 128);
      unit_.template store<3>(products_ + 16 * 32 + 16, 128);
      fetch_ahead();
      if (block_.head.zero_points) {
        scale<Extra::kZeroPoints>(x, count, group, sums);
      } else if (block_.head.minima) {
        scale<Extra::kMinima>(x, count, group, sums);
      } else {
        scale<Extra::kNone>(x, count, group, sums);
      }
    }
  }

  // The lines of one group of both panels.
  void fetch_ahead() {
    if (num_ahead_ == 0) return;
    --num_ahead_;
    for (const std::byte* const end = ahead_ + group_bytes_; ahead_ < end; ahead_ += 64) {
      __builtin_prefetch(ahead_, 0, 2);
      __builtin_prefetch(ahead_ + block_.panel_bytes, 0, 2);
    }
  }

  // sums (count, 32) += products_ times the group's scales.
  template <Extra kExtra>
  void scale(const std::byte* x, int64_t count, int64_t group, float* sums) const {
    const std::byte* const heads[2] = {panels_[0] + head_at(group), panels_[1] + head_at(group)};
    const int64_t place = group % head_groups_;
    const int64_t stride = block_.x_stride_bytes;
    const std::byte* x_scale = x + num_groups_ * group_size_ + group * 4;
    const std::byte* x_start = x_scale + num_groups_ * 4;
    const int32_t* products = products_;
    const V scale0 = head_scales<V, kIsMxfp4>(block_.head, heads[0], place);
    const V scale1 = head_scales<V, kIsMxfp4>(block_.head, heads[1], place);
    V extra0;  // zero points or minima
    V extra1;
    if constexpr (kExtra == Extra::kZeroPoints) {
      const int64_t at = block_.head.zeros_at() + place * kPanelRows * 2;
      extra0 = V::load_bf16(heads[0] + at);
      extra1 = V::load_bf16(heads[1] + at);
    }
    if constexpr (kExtra == Extra::kMinima) {
      extra0 = head_minima<V>(block_.head, heads[0], place);
      extra1 = head_minima<V>(block_.head, heads[1], place);
    }
    const float factor = minima_factor(block_.head, kOffset);
#pragma GCC unroll 4
    for (int64_t r = 0; r < count; ++r) {
      V total0 = V::from_ints(products);
      V total1 = V::from_ints(products + 16);
      const auto start = static_cast<float>(*reinterpret_cast<const int32_t*>(x_start));
      if constexpr (kExtra == Extra::kZeroPoints) {
        total0 = V::fma(extra0, V::set1(start), total0);
        total1 = V::fma(extra1, V::set1(start), total1);
      }
      const float own = *reinterpret_cast<const float*>(x_scale);
      const V scale = V::set1(own);
      V sum0 = V::fma(total0, scale0 * scale, V::load(sums));
      V sum1 = V::fma(total1, scale1 * scale, V::load(sums + 16));
      if constexpr (kExtra == Extra::kMinima) {
        const V sum_of_x = V::set1(start * factor * own);
        sum0 = V::fma(extra0, sum_of_x, sum0);
        sum1 = V::fma(extra1, sum_of_x, sum1);
      }
      sum0.store(sums);
      sum1.store(sums + 16);
      x_scale += stride;
      x_start += stride;
      products += 32;
      sums += 32;
    }
  }

  const MatmulBlock& block_;
  const int64_t group_size_;
  const int64_t num_groups_;
  const int64_t group_bytes_;  // of a panel's lines
  const int64_t head_bytes_;
  const int64_t head_groups_;
  const int64_t step_;  // columns of a tile
  Unit unit_;

  int64_t row_ = 0;  // the rows at work, and the panels
  int64_t num_rows_ = 0;
  int64_t pair_ = 0;
  const std::byte* panels_[2] = {};
  bool two_panels_ = false;
  const std::byte* ahead_ = nullptr;  // what to fetch next, of the first of two panels
  int64_t num_ahead_ = 0;             // groups

  alignas(64) std::byte bytes_[2 * kAmxIntCols * kPanelRows];
  alignas(64) int32_t products_[32 * 32] = {};
  Sums sums_;
};

}  // namespace tgi
