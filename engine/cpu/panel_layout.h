// How matrices and the KV cache lie in memory: in panels of 16 rows, the 16 values of one column
// side by side, so that a vector register holds one column of 16 outputs. A panel is a run of
// 64-byte lines (128 for f32):
//
//   f32   line i: 16 of column 2i, then 16 of column 2i + 1
//   f16   line i: 16 of column 2i, then 16 of column 2i + 1
//   bf16  line i: 16 pairs. Adjacent: (2i, 2i + 1), as an AMX tile wants them. Even-odd, for
//         instructions that add the upper half of a pair before the lower one: of every
//         `pair_block` columns, first the even columns in pairs (4i + 2, 4i), then the odd ones in
//         pairs (4i + 3, 4i + 1); the first of a pair is the lower half.
//   int8  line i: 16 quadruples of columns 4i to 4i + 3, each value + 128
//   int4  line i: 16 quadruples; the lower halves of the bytes are columns 8i to 8i + 3, the upper
//         ones 8i + 4 to 8i + 7, each value + 8
//   mxfp4, table4 as int4, but halves are numbers of codes, which are looked up
//   int6, int5 as int4, the lower 4 bits of each value + 32 or 16; before the lines of 16 (32)
//   columns
//         one with their upper bits: those of column i are in the byte of column i % 4, the lowest
//         of its bits belonging to the first of its columns
//
// The lines of each two groups of columns of a panel of integers follow a head with their scales:
// 16 for the first group, 16 for the second. They are one line of bf16, or two of f32 or one of f16
// where the integers came from a checkpoint; with zero points another line follows, of bf16, each
// divided by what is added to the integers (128 or 8); with minima as much as the scales again, and
// nothing is added to integers of less than 8 bits. In an mxfp4 panel one line of bytes is the head
// of four groups: exponents of f32, so that a byte b is the scale 2^(b - 127), and 0 is 0.
//
// Where scales have factors the head is that of the groups of 256 columns: a line of 16 numbers of
// f16 for the scales and 16 for the minima, then 16 signed bytes for the scale of each group, and
// with minima 16 more for each. A scale is number times byte, a minimum minus that.
//
// Columns are padded with zeros, as are missing rows of the last panel.
#pragma once

#include <cstdint>

#include "engine/cpu/code_tables.h"
#include "engine/tensor/tensor.h"

namespace tgi {

inline constexpr int64_t kPanelRows = 16;

// Inlined everywhere: kernels of different instruction sets use it, and the linker must not share
// one copy among them.
#define TGI_INLINE [[gnu::always_inline]] constexpr

[[gnu::always_inline]] constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

enum class PanelType : uint8_t { kF32, kF16, kBF16, kInt8, kInt4, kMxfp4, kInt6, kInt5, kTable4 };
inline constexpr int kNumPanelTypes = 9;
// Matrices are rounded to the first ones; the others are packed as they are stored.
inline constexpr int kNumRoundedTypes = 5;

// Calls fn.operator()<kType>() for each kind of integers.
template <typename Fn>
constexpr void for_integer_panels(Fn fn) {
  fn.template operator()<PanelType::kInt8>();
  fn.template operator()<PanelType::kInt4>();
  fn.template operator()<PanelType::kMxfp4>();
  fn.template operator()<PanelType::kInt6>();
  fn.template operator()<PanelType::kInt5>();
  fn.template operator()<PanelType::kTable4>();
}

// Bits of an integer that lie apart from its lower 4, and columns whose bits share a line.
TGI_INLINE int upper_bits(PanelType type) {
  return type == PanelType::kInt6 ? 2 : type == PanelType::kInt5 ? 1 : 0;
}
TGI_INLINE int64_t upper_line_cols(PanelType type) {
  return upper_bits(type) == 0 ? 0 : 32 / upper_bits(type);
}
// Integers that are + an offset only where there are no minima.
TGI_INLINE bool is_narrow_integer(PanelType type) {
  return type == PanelType::kInt4 || upper_bits(type) > 0;
}
// What is added to integers (of mxfp4 and table4, once they are looked up).
TGI_INLINE int integer_offset(PanelType type) {
  switch (type) {
    case PanelType::kInt4:
      return 8;
    case PanelType::kMxfp4:
      return 12;
    case PanelType::kInt6:
      return 32;
    case PanelType::kInt5:
      return 16;
    default:
      return 128;
  }
}

// Codes of a KV cache are multiplied as bf16, which holds each of them exactly.
[[gnu::always_inline]] constexpr PanelType panel_type(DType dtype) {
  return is_cache_code(dtype) ? PanelType::kBF16 : static_cast<PanelType>(dtype);
}

enum class HeadScales : uint8_t { kBF16, kF32, kF16, kExponents, kFactors };

// What is before the lines of some groups of an int8, int4 or mxfp4 panel.
struct GroupHead {
  HeadScales scales = HeadScales::kBF16;
  bool zero_points = false;
  bool minima = false;
  uint8_t factor_groups = 0;          // of 256 columns, where there are factors
  CodeTable table = CodeTable::kIq4;  // of table4

  TGI_INLINE bool factors() const { return scales == HeadScales::kFactors; }
  TGI_INLINE int64_t num_groups() const {
    if (factors()) return factor_groups;
    return scales == HeadScales::kExponents ? 4 : 2;
  }
  TGI_INLINE int64_t scale_bytes() const {
    // No table: kernels ask for each group, and g++ would fill it anew each time.
    if (scales == HeadScales::kF32) return 4;
    return scales <= HeadScales::kF16 ? 2 : 1;
  }
  TGI_INLINE int64_t scales_at() const { return factors() ? 64 : 0; }
  TGI_INLINE int64_t zeros_at() const {
    return scales_at() + num_groups() * kPanelRows * scale_bytes();
  }
  TGI_INLINE int64_t minima_at() const { return zeros_at() + (zero_points ? 64 : 0); }
  TGI_INLINE int64_t bytes() const {
    return minima_at() + (minima ? num_groups() * kPanelRows * scale_bytes() : 0);
  }
  // Of the numbers of `size` bytes that begin at `begin`: that of a row for the i-th group.
  TGI_INLINE static int64_t place(int64_t begin, int64_t i, int64_t row, int64_t size) {
    return begin + (i * kPanelRows + row) * size;
  }
};

enum class PairOrder : uint8_t { kAdjacent, kEvenOdd };

// Columns whose products a bf16 dot product sums before it adds them to the result: those of one
// AMX tile of weights, and of one chunk of positions in the cache of values.
inline constexpr int64_t kPairBlock = 32;
inline constexpr int64_t kValuePairBlock = 16;

struct PanelLayout {
  PanelType type = PanelType::kF32;
  int64_t cols = 0;
  int64_t group_size = 0;                       // columns that share a scale: of integers
  GroupHead head{};                             // of integers
  PairOrder pair_order = PairOrder::kAdjacent;  // bf16
  int64_t pair_block = kPairBlock;              // bf16

  TGI_INLINE int64_t padded_cols() const {
    if (quantised()) return round_up(cols, group_size);
    return round_up(cols, type == PanelType::kBF16 ? pair_block : 2);
  }
  TGI_INLINE int64_t bits() const {
    constexpr int64_t kBits[] = {32, 16, 16, 8, 4, 4, 6, 5, 4};
    return kBits[static_cast<int>(type)];
  }
  TGI_INLINE bool quantised() const { return type >= PanelType::kInt8; }
  TGI_INLINE int64_t line_bytes() const { return type == PanelType::kF32 ? 128 : 64; }
  TGI_INLINE int64_t data_bytes() const { return padded_cols() * kPanelRows * bits() / 8; }
  TGI_INLINE int64_t num_groups() const { return quantised() ? padded_cols() / group_size : 0; }
  // Of the lines of a group, and of a head with the groups that follow it.
  TGI_INLINE int64_t group_bytes() const { return group_size * kPanelRows * bits() / 8; }
  TGI_INLINE int64_t head_stride() const {
    return head.num_groups() * group_bytes() + head.bytes();
  }
  TGI_INLINE int64_t bytes() const {
    return data_bytes() +
           round_up(num_groups(), head.num_groups()) / head.num_groups() * head.bytes();
  }

  // Where one element lies, from the start of its panel; of 4 bits, the byte that holds it, of 5
  // and 6 that of its lower ones.
  TGI_INLINE int64_t offset(int64_t row, int64_t col) const {
    switch (type) {
      case PanelType::kF32:
        return col / 2 * 128 + (col % 2 * kPanelRows + row) * 4;
      case PanelType::kF16:
        return col / 2 * 64 + (col % 2 * kPanelRows + row) * 2;
      case PanelType::kBF16:
        if (pair_order == PairOrder::kAdjacent) return col / 2 * 64 + row * 4 + col % 2 * 2;
        return even_odd_offset(row, col);
      case PanelType::kInt8:
        return heads_before(col) + col / 4 * 64 + row * 4 + col % 4;
      case PanelType::kInt4:
      case PanelType::kMxfp4:
      case PanelType::kTable4:
        return heads_before(col) + col / 8 * 64 + row * 4 + col % 4;
      case PanelType::kInt6:
      case PanelType::kInt5:
        return upper_offset(row, col) + 64 + col % upper_line_cols(type) / 8 * 64;
    }
    return 0;
  }
  // The byte with its upper bits, and where they begin in it. REQUIRES: upper_bits(type) > 0.
  TGI_INLINE int64_t upper_offset(int64_t row, int64_t col) const {
    const int64_t line_cols = upper_line_cols(type);
    return heads_before(col) + col / line_cols * (line_cols / 8 + 1) * 64 + row * 4 + col % 4;
  }
  TGI_INLINE int64_t upper_shift(int64_t col) const {
    return col % upper_line_cols(type) / 4 * upper_bits(type);
  }
  TGI_INLINE int64_t scale_offset(int64_t row, int64_t group) const {
    return head_offset(group) + place_in_head(head.scales_at(), row, group);
  }
  // Of the number that all scales of a head are multiples of, and of that of the minima.
  TGI_INLINE int64_t block_scale_offset(int64_t row, int64_t group) const {
    return head_offset(group) + GroupHead::place(0, 0, row, 2);
  }
  TGI_INLINE int64_t block_minimum_offset(int64_t row, int64_t group) const {
    return head_offset(group) + GroupHead::place(0, 1, row, 2);
  }
  TGI_INLINE int64_t zero_offset(int64_t row, int64_t group) const {
    return head_offset(group) + GroupHead::place(head.zeros_at(), group % 2, row, 2);
  }
  TGI_INLINE int64_t minimum_offset(int64_t row, int64_t group) const {
    return head_offset(group) + place_in_head(head.minima_at(), row, group);
  }

 private:
  TGI_INLINE int64_t place_in_head(int64_t begin, int64_t row, int64_t group) const {
    return GroupHead::place(begin, group % head.num_groups(), row, head.scale_bytes());
  }
  TGI_INLINE int64_t head_offset(int64_t group) const {
    return group / head.num_groups() * head_stride();
  }
  TGI_INLINE int64_t heads_before(int64_t col) const {
    return (col / group_size / head.num_groups() + 1) * head.bytes();
  }
  TGI_INLINE int64_t even_odd_offset(int64_t row, int64_t col) const {
    const int64_t in_block = col % pair_block;
    const int64_t line = in_block / 4 + (col % 2 == 1 ? pair_block / 4 : 0);
    return col / pair_block * pair_block * 32 + line * 64 + row * 4 + (col % 4 < 2 ? 2 : 0);
  }
};

#undef TGI_INLINE

}  // namespace tgi
