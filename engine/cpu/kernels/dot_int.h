// Panels of integers, x rounded to int8. Within a group of columns the sum is one of
// integers and exact; groups are added in order: sum = fma(integer sum, scale of w * scale of x,
// sum), with minima then fma(minimum, (sum of x) * scale of x, sum). With zero points the integer
// sum is less zero * (sum of x), which is exact in f32 too: all stays below 2^24.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/head_values.h"
#include "engine/cpu/kernels/tile.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

struct QuantisedGroup {
  float scale;  // NaN when there is a NaN or an infinity, which no integer can pass on
  int32_t sum;  // of the integers
};

// Rounds one group of x: scale = max |x| / 127, to the nearest multiple, ties to even; zeros behind
// `count` up to group_size, a multiple of 16.
template <typename V>
QuantisedGroup quantise_group(const float* x, int64_t count, int64_t group_size, std::byte* out) {
  V highest = V::zero();
  V rest = V::zero();
  for (int64_t i = 0; i < count; i += 16) {
    const V value = V::load_first(x + i, count - i);
    highest = V::max(value.abs(), highest);
    rest = rest + (value - value);
  }
  const float largest = highest.max_lane();
  const V inverse = V::set1(largest > 0.0F ? 127.0F / largest : 0.0F);
  // Adding 1.5 * 2^23 rounds to an integer, which is then the lowest bits of the sum.
  const V shift = V::set1(0x1.8p23F);
  V integers = V::zero();
  for (int64_t i = 0; i < group_size; i += 16) {
    const V rounded = V::load_first(x + i, count - i) * inverse + shift;
    rounded.store_low_bytes(out + i);
    integers = integers + (rounded - shift);
  }
  const float sum = integers.sum();  // exact in any order
  return {.scale = largest / 127.0F + rest.sum(),
          .sum = __builtin_isnan(sum) ? 0 : static_cast<int32_t>(sum)};
}

// Twice the values of e2m1 by their code, + 12.
alignas(16) inline constexpr uint8_t kMxfp4Bytes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                        12, 11, 10, 9,  8,  6,  4,  0};

// `Ints` computes with sixteen lanes of int32:
//   V
//   kPrefetchesForManyRows         false where multiplying them is so slow that memory keeps up
//   Lines: load(line), lower(), upper()    64 unsigned bytes; of a line of 4 bits its halves
//          looked_up(table)                each byte, below 16, as table[byte]
//          with_upper<kBits, kPlace>(line) | 16 times bits kPlace * kBits and so on of its bytes
//   set1(int), add_dot(lines, x), to_float()
// or, where there is no instruction for the dot product of four bytes:
//   Partial: zero(), add_dot(lines, x)     sums of int16 of a few products of small bytes
//   add(partial)
//   add_dot_less_128(lines, x)             of bytes of any size, less 128
template <typename Ints>
concept HasPartialSums = requires {
  typename Ints::Partial;
};

// Columns of one output, a power of 2, whose products stay below 2^15 where two of four are added
// in one int16. Bytes are at most twice the offset; 0 where two products are too many.
constexpr int64_t partial_cols(PanelType type) {
  const int64_t most = 2 * 127 * 2 * integer_offset(type);
  int64_t cols = 0;
  for (int64_t fours = 1; fours * most < 1 << 15; fours *= 2) cols = 4 * fours;
  return cols;
}

template <typename Ints, PanelType kType>
class DotInt {
 public:
  using V = typename Ints::V;
  static constexpr int kMaxAccumulators = V::kMaxAccumulators;
  static constexpr bool kPrefetchesForManyRows = kTilesPrefetch<V> && Ints::kPrefetchesForManyRows;
  // With two panels both of a tile's sums, of integers and of floats, are in registers: of AVX-512.
  // Few rows wait for memory, which is fastest where it is read as one stream.
  static constexpr int panels_for(int num_rows) {
    constexpr bool kBothFit = 2 * 2 * kMaxTileRows <= V::kMaxAccumulators;
    return !kFewTiles && kBothFit && num_rows > 4 ? 2 : 1;
  }
  static constexpr int64_t kLineCols = kType == PanelType::kInt8 ? 4 : 8;
  static constexpr bool kIsMxfp4 = kType == PanelType::kMxfp4;
  static constexpr int kUpperBits = upper_bits(kType);
  // Panels hold values + kOffset, or what is looked up is that.
  static constexpr int32_t kOffset = integer_offset(kType);

  // 0 where each product is added to int32.
  static constexpr int64_t kPartialCols = HasPartialSums<Ints> ? partial_cols(kType) : 0;
  static constexpr bool kLess128 = HasPartialSums<Ints> && kPartialCols == 0;

  // [quantised columns][a scale per group, f32][-kOffset * sum of the group, int32]
  static int64_t x_bytes(int64_t k, int64_t group_size) {
    const int64_t padded = round_up(k, group_size);
    return padded + padded / group_size * 8;
  }
  static void prepare(const float* x, int64_t k, int64_t group_size, std::byte* out) {
    const DotInt dot(k, group_size);
    auto* const scales = reinterpret_cast<float*>(out + dot.scales_);
    auto* const starts = reinterpret_cast<int32_t*>(out + dot.starts_);
    for (int64_t group = 0; group < dot.num_groups_; ++group) {
      const int64_t begin = group * group_size;
      const int64_t count = k - begin < group_size ? k - begin : group_size;
      const auto quantised = quantise_group<V>(x + begin, count, group_size, out + begin);
      scales[group] = quantised.scale;
      starts[group] = -kOffset * quantised.sum;
    }
  }

  DotInt(int64_t k, int64_t group_size, GroupHead head = {})
      : group_size_(group_size),
        head_(head),
        num_groups_(round_up(k, group_size) / group_size),
        scales_(num_groups_ * group_size),
        starts_(scales_ + num_groups_ * 4),
        group_bytes_(group_size * kPanelRows * (kType == PanelType::kInt8 ? 8 : 4 + kUpperBits) /
                     8) {}

  // REQUIRES: begin is a multiple of the group size.
  template <int MR, int NP, typename Prefetch>
  [[gnu::always_inline]] void accumulate(const std::byte* x,
                                         int64_t x_stride_bytes,
                                         int64_t begin,
                                         int64_t end,
                                         const std::byte* const (&panels)[NP],
                                         V (&sums)[MR][NP],
                                         const Prefetch& prefetch) const {
    const uint8_t(&table)[16] = kIsMxfp4 ? kMxfp4Bytes : kCodeTables[static_cast<int>(head_.table)];
    const int64_t head_groups = head_.num_groups();  // a power of 2
    const int head_shift = __builtin_ctzll(static_cast<uint64_t>(head_groups));
    const int64_t head_stride = head_groups * group_bytes_ + head_.bytes();
    int64_t group = begin / group_size_;
    for (int64_t i = begin; i < end; i += group_size_, ++group) {
      Ints totals[MR][NP];
      unrolled<MR>(TGI_UNROLLED(r) {
        const auto* starts =
            reinterpret_cast<const int32_t*>(x + r.value * x_stride_bytes + starts_);
        // With minima panels of few bits hold the integers themselves.
        const bool no_offset = kLess128 || (is_narrow_integer(kType) && head_.minima);
        const int32_t start = no_offset ? 0 : starts[group];
        unrolled<NP>(TGI_UNROLLED(j) { totals[r.value][j.value] = Ints::set1(start); });
      });
      const int64_t in_head = group & (head_groups - 1);
      const int64_t scales_at = (group >> head_shift) * head_stride;
      const int64_t head_end = in_head == 0 ? scales_at + head_.bytes() : scales_at;
      for (int64_t line = scales_at; line < head_end; line += 64) {
        unrolled<NP>(TGI_UNROLLED(j) { prefetch.fetch(j.value, panels[j.value] + line, line); });
      }
      const Group<NP, Prefetch> lines{panels, scales_at + head_.bytes() + in_head * group_bytes_,
                                      prefetch, table};
      if constexpr (kUpperBits > 0) {
        add_split_lines(x + i, x_stride_bytes, lines, totals);
      } else if constexpr (kPartialCols > 0) {
        const int64_t cols = group_size_ < kPartialCols ? group_size_ : kPartialCols;
        for (int64_t c = 0; c < group_size_; c += cols) {
          Partials<MR, NP> partials;
          partials.clear();
          add_lines(x + i + c, x_stride_bytes, lines.from(c * 8), cols, partials.sums);
          partials.add_to(totals);
        }
      } else {
        add_lines(x + i, x_stride_bytes, lines, group_size_, totals);
      }
      V scales[NP];
      unrolled<NP>(TGI_UNROLLED(j) {
        scales[j.value] = head_scales<V, kIsMxfp4>(head_, panels[j.value] + scales_at, in_head);
      });
      const int64_t zeros_at = scales_at + head_.zeros_at() + in_head * 32;
      unrolled<MR>(TGI_UNROLLED(r) {
        const auto* own = reinterpret_cast<const float*>(x + r.value * x_stride_bytes + scales_);
        const V scale = V::set1(own[group]);
        unrolled<NP>(TGI_UNROLLED(j) {
          V total = totals[r.value][j.value].to_float();
          // zero / kOffset * start is - zero * (sum of x).
          if (head_.zero_points) {
            const auto* starts =
                reinterpret_cast<const int32_t*>(x + r.value * x_stride_bytes + starts_);
            const V start = V::set1(static_cast<float>(starts[group]));
            total = V::fma(V::load_bf16(panels[j.value] + zeros_at), start, total);
          }
          V& sum = sums[r.value][j.value];
          sum = V::fma(total, scales[j.value] * scale, sum);
        });
      });
      if (head_.minima) {
        unrolled<NP>(TGI_UNROLLED(j) {
          scales[j.value] = head_minima<V>(head_, panels[j.value] + scales_at, in_head);
        });
        const float factor = minima_factor(head_, kOffset);
        unrolled<MR>(TGI_UNROLLED(r) {
          const std::byte* const row = x + r.value * x_stride_bytes;
          const auto* own = reinterpret_cast<const float*>(row + scales_);
          const auto* starts = reinterpret_cast<const int32_t*>(row + starts_);
          const V sum_of_x = V::set1(static_cast<float>(starts[group]) * factor * own[group]);
          unrolled<NP>(TGI_UNROLLED(j) {
            V& sum = sums[r.value][j.value];
            sum = V::fma(scales[j.value], sum_of_x, sum);
          });
        });
      }
    }
  }

 private:
  template <int NP, typename Prefetch>
  struct Group {
    const std::byte* const (&panels)[NP];
    int64_t offset;  // of its first line in each
    const Prefetch& prefetch;
    const uint8_t (&table)[16];

    [[gnu::always_inline]] Group from(int64_t bytes) const {
      return {panels, offset + bytes, prefetch, table};
    }
    [[gnu::always_inline]] typename Ints::Lines load(int panel, int64_t bytes) const {
      const int64_t at = offset + bytes;
      prefetch.fetch(panel, panels[panel] + at, at);
      return Ints::Lines::load(panels[panel] + at);
    }
  };

  template <int MR, int NP, bool kUsed = (kPartialCols > 0)>
  struct Partials {
    typename Ints::Partial sums[MR][NP];

    [[gnu::always_inline]] void clear() { fill_tile(sums, Ints::Partial::zero()); }
    [[gnu::always_inline]] void add_to(Ints (&totals)[MR][NP]) const {
      unrolled<MR>(TGI_UNROLLED(r) {
        unrolled<NP>(TGI_UNROLLED(j) { totals[r.value][j.value].add(sums[r.value][j.value]); });
      });
    }
  };
  template <int MR, int NP>
  struct Partials<MR, NP, false> {
    [[gnu::always_inline]] void clear() {}
  };

  // Adds so many columns of a group.
  template <int MR, int NP, typename Prefetch, typename Sums>
  [[gnu::always_inline]] void add_lines(const std::byte* x,
                                        int64_t x_stride_bytes,
                                        const Group<NP, Prefetch>& group,
                                        int64_t cols,
                                        Sums (&sums)[MR][NP]) const {
    for (int64_t c = 0; c < cols; c += kLineCols) {
      typename Ints::Lines lines[NP];
      unrolled<NP>(TGI_UNROLLED(j) { lines[j.value] = group.load(j.value, c * (64 / kLineCols)); });
      if constexpr (kLineCols == 8) {
        typename Ints::Lines lower[NP];
        unrolled<NP>(
            TGI_UNROLLED(j) { lower[j.value] = integers(lines[j.value].lower(), group.table); });
        add(x + c, x_stride_bytes, lower, sums);
        unrolled<NP>(
            TGI_UNROLLED(j) { lines[j.value] = integers(lines[j.value].upper(), group.table); });
      }
      add(x + c + kLineCols - 4, x_stride_bytes, lines, sums);
    }
  }

  // Of integers whose upper bits lie in a line of their own.
  template <int MR, int NP, typename Prefetch>
  [[gnu::always_inline]] void add_split_lines(const std::byte* x,
                                              int64_t x_stride_bytes,
                                              const Group<NP, Prefetch>& group,
                                              Ints (&totals)[MR][NP]) const {
    constexpr int64_t kUpperCols = upper_line_cols(kType);
    constexpr int64_t kLowerLines = kUpperCols / 8;
    for (int64_t c = 0; c < group_size_; c += kUpperCols) {
      const int64_t line = c * (kLowerLines + 1) * 64 / kUpperCols;
      typename Ints::Lines upper[NP];
      unrolled<NP>(TGI_UNROLLED(j) { upper[j.value] = group.load(j.value, line); });
      Partials<MR, NP> partials;
      partials.clear();
      unrolled_types<kLowerLines>(TGI_UNROLLED_TYPES(i) {
        typename Ints::Lines lines[NP];
        typename Ints::Lines lower[NP];
        unrolled<NP>(TGI_UNROLLED(j) {
          lines[j.value] = group.load(j.value, line + 64 + i * 64);
          lower[j.value] =
              lines[j.value].lower().template with_upper<kUpperBits, 2 * i>(upper[j.value]);
          lines[j.value] =
              lines[j.value].upper().template with_upper<kUpperBits, 2 * i + 1>(upper[j.value]);
        });
        const std::byte* const from = x + c + i * 8;
        if constexpr (kPartialCols > 0) {
          add(from, x_stride_bytes, lower, partials.sums);
          add(from + 4, x_stride_bytes, lines, partials.sums);
          if constexpr ((i + 1) * 8 % kPartialCols == 0) {
            partials.add_to(totals);
            partials.clear();
          }
        } else {
          add(from, x_stride_bytes, lower, totals);
          add(from + 4, x_stride_bytes, lines, totals);
        }
      });
    }
  }

  [[gnu::always_inline]] static typename Ints::Lines integers(const typename Ints::Lines& halves,
                                                              const uint8_t (&table)[16]) {
    constexpr bool kIsLookedUp = kIsMxfp4 || kType == PanelType::kTable4;
    if constexpr (kIsLookedUp) return halves.looked_up(table);
    return halves;
  }

  template <int MR, int NP, typename Sums>
  [[gnu::always_inline]] static void add(const std::byte* x,
                                         int64_t x_stride_bytes,
                                         const typename Ints::Lines (&lines)[NP],
                                         Sums (&sums)[MR][NP]) {
    unrolled<MR>(TGI_UNROLLED(r) {
      const std::byte* from = x + r.value * x_stride_bytes;
      unrolled<NP>(TGI_UNROLLED(j) {
        if constexpr (kLess128) {
          sums[r.value][j.value].add_dot_less_128(lines[j.value], from);
        } else {
          sums[r.value][j.value].add_dot(lines[j.value], from);
        }
      });
    });
  }

  int64_t group_size_;
  GroupHead head_;
  int64_t num_groups_;
  int64_t scales_;       // offset of x's scales
  int64_t starts_;       // offset of x's starts
  int64_t group_bytes_;  // of a panel's lines
};

}  // namespace tgi
