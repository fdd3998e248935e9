// From the codes of a packed matrix to numbers: pairs for tensor cores, or floats. All
// values are exact in bf16 and in f16.
#pragma once

#include <type_traits>

#include "cuda/kernels/packed.h"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/types.cuh"

namespace tgi::cuda {

// 8 codes of a unit, as they lie.
template <PackedCodes kCodes>
struct PackedUnit {
  uint32_t words[unit_bytes(kCodes) / 4];
};

// A lane's codes of a chunk: of two rows of a panel, 8 apart.
template <PackedCodes kCodes>
__device__ __forceinline__ void load_codes(const std::byte* panel,
                                           int32_t chunk,
                                           PackedUnit<kCodes> (&out)[2][units_of_chunk(kCodes)]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint4 codes = load_streaming(panel + int64_t{chunk} * kChunkBytes * kPanelOutputs +
                                       half * 512 + threadIdx.x % 32 * 16);
    const uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
    constexpr int kWords = unit_bytes(kCodes) / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) out[half][i / kWords].words[i % kWords] = words[i];
  }
}

// Four bytes, each `low + 128`, as floats. 2^23 + a byte is a float whose lowest bits are the byte.
template <int kByte>
__device__ __forceinline__ float signed_byte(uint32_t bytes) {
  const uint32_t bits = __byte_perm(bytes, 0x4b000000U, 0x7440U | kByte);
  return __uint_as_float(bits) - (8388608.0F + 128.0F);
}

// Four bytes, each an e4m3, as floats: with their exponents at the bottom of those of a float, and
// then multiplied by what is between the two biases.
template <int kByte>
__device__ __forceinline__ float e4m3_byte(uint32_t bytes) {
  const uint32_t top = __byte_perm(bytes, 0, kByte << 12 | 0x444U);
  const uint32_t bits = (top & 0x80000000U) | (top & 0x7f000000U) >> 4;
  return __uint_as_float(bits) * 0x1p120F;
}

template <PackedCodes kCodes, int kByte>
__device__ __forceinline__ float byte_value(uint32_t bytes) {
  if constexpr (kCodes == PackedCodes::kF8E4M3) {
    return e4m3_byte<kByte>(bytes);
  } else {
    return signed_byte<kByte>(bytes);
  }
}

// Four bytes of the table, of the places in the low half of `places`.
__device__ __forceinline__ uint32_t look_up(const uint32_t (&table)[4], uint32_t places) {
  const uint32_t low = __byte_perm(table[0], table[1], places & 0x7777U);
  const uint32_t high = __byte_perm(table[2], table[3], places & 0x7777U);
  const uint32_t is_high = __byte_perm(0x0000ff00U, 0, places >> 3 & 0x1111U);
  return (low & ~is_high) | (high & is_high);
}

// The values of 8 codes of a unit, in order.
template <PackedCodes kCodes>
__device__ __forceinline__ void unpack_floats(const PackedUnit<kCodes>& unit,
                                              const PackedShape& shape,
                                              float (&out)[8]) {
  const uint32_t word = unit.words[0];
  if constexpr (code_bits(kCodes) == 8) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      out[4 * i] = byte_value<kCodes, 0>(unit.words[i]);
      out[4 * i + 1] = byte_value<kCodes, 1>(unit.words[i]);
      out[4 * i + 2] = byte_value<kCodes, 2>(unit.words[i]);
      out[4 * i + 3] = byte_value<kCodes, 3>(unit.words[i]);
    }
  } else if constexpr (kCodes == PackedCodes::kFp4) {
    // Its bits are the lowest of the exponent and the highest of the mantissa of a float, those
    // below the normal numbers too; 2^127 is between the biases and twice the value.
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t code = word >> (i % 2 * 16 + i / 2 * 4);
      out[i] = __uint_as_float((code & 8U) << 28 | (code & 7U) << 22) * 0x1p127F;
    }
  } else if constexpr (kCodes == PackedCodes::kTable4) {
    const uint32_t even = look_up(shape.table, word);
    const uint32_t odd = look_up(shape.table, word >> 16);
    out[0] = signed_byte<0>(even);
    out[1] = signed_byte<0>(odd);
    out[2] = signed_byte<1>(even);
    out[3] = signed_byte<1>(odd);
    out[4] = signed_byte<2>(even);
    out[5] = signed_byte<2>(odd);
    out[6] = signed_byte<3>(even);
    out[7] = signed_byte<3>(odd);
  } else {
    const float above = 8388608.0F + static_cast<float>(shape.offset);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = __uint_as_float((word >> 4 * i & 15U) | 0x4b000000U) - above;
      out[2 * i + 1] = __uint_as_float((word >> (16 + 4 * i) & 15U) | 0x4b000000U) - above;
    }
  }
}

// Two numbers of T in a word.
template <typename T>
using PairOf = std::conditional_t<std::is_same_v<T, bf16>, __nv_bfloat162, __half2>;

template <typename T>
__device__ __forceinline__ uint32_t subtract_pairs(uint32_t a, uint32_t b) {
  const PairOf<T> out =
      __hsub2(*reinterpret_cast<const PairOf<T>*>(&a), *reinterpret_cast<const PairOf<T>*>(&b));
  return *reinterpret_cast<const uint32_t*>(&out);
}
template <typename T>
__device__ __forceinline__ uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  const PairOf<T> out =
      __hmul2(*reinterpret_cast<const PairOf<T>*>(&a), *reinterpret_cast<const PairOf<T>*>(&b));
  return *reinterpret_cast<const uint32_t*>(&out);
}

// Of both halves of a word, bits kFrom and on at bits kTo and on.
template <int kFrom, int kTo>
__device__ __forceinline__ uint32_t moved(uint32_t word) {
  return kTo >= kFrom ? word << (kTo - kFrom) : word >> (kFrom - kTo);
}

// Codes i of kFp4 of both halves of a word, as in unpack_floats.
template <typename T, int kCode>
__device__ __forceinline__ uint32_t fp4_pair(uint32_t word) {
  constexpr bool kIsBf16 = std::is_same_v<T, bf16>;
  constexpr int kTo = kIsBf16 ? 6 : 9;  // the highest but two of the mantissa's and exponent's
  constexpr uint32_t kBits = 0x00010001U * (7U << kTo);
  constexpr uint32_t kBetween = kIsBf16 ? 0x7f007f00U : 0x78007800U;  // 2^127, 2^15
  const uint32_t sign = moved<4 * kCode + 3, 15>(word) & 0x80008000U;
  return multiply_pairs<T>(and_or(moved<4 * kCode, kTo>(word), kBits, sign), kBetween);
}

// The values of 8 codes of a unit as 4 pairs of T.
template <typename T, PackedCodes kCodes>
__device__ __forceinline__ void unpack_pairs(const PackedUnit<kCodes>& unit,
                                             const PackedShape& shape,
                                             uint32_t (&out)[4]) {
  if constexpr (kCodes == PackedCodes::kInt4) {
    // 128 + 0..15 in bf16, 1024 + 0..15 in f16: the number's lowest bits are the code's.
    constexpr uint32_t kAbove = std::is_same_v<T, bf16> ? 0x43004300U : 0x64006400U;
    const uint32_t above = kAbove | shape.offset * 0x00010001U;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t pair = and_or(unit.words[0] >> 4 * i, 0x000f000fU, kAbove);
      out[i] = subtract_pairs<T>(pair, above);
    }
  } else if constexpr (kCodes == PackedCodes::kFp4) {
    out[0] = fp4_pair<T, 0>(unit.words[0]);
    out[1] = fp4_pair<T, 1>(unit.words[0]);
    out[2] = fp4_pair<T, 2>(unit.words[0]);
    out[3] = fp4_pair<T, 3>(unit.words[0]);
  } else {
    float values[8];
    unpack_floats(unit, shape, values);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = pack<T>(values[2 * i], values[2 * i + 1]);
  }
}

// The word that holds a scale or minimum (num_groups, 16) of a panel, of those that begin at
// `from`: nothing is computed with it, so that nobody waits for it.
__device__ __forceinline__ uint32_t load_stored(const std::byte* from,
                                                const PackedShape& shape,
                                                int32_t group,
                                                int row) {
  const int32_t at = (group * kPanelOutputs + row) << shape.scale_shift;
  return __ldg(reinterpret_cast<const uint32_t*>(from + (at & ~3)));
}

// Of such a word, what is of the row, from bit 0; in a larger word with something above.
__device__ __forceinline__ uint32_t stored_bits(uint32_t word, const PackedShape& shape, int row) {
  return word >> ((row << shape.scale_shift & 3) * 8);
}

// What belongs to it of kFactors: an f16.
__device__ __forceinline__ uint32_t load_factor(const std::byte* from,
                                                const PackedShape& shape,
                                                int32_t group,
                                                int row) {
  const int32_t factor = group * shape.group_size / kPackedFactorCols * kPanelOutputs + row;
  return __ldg(reinterpret_cast<const uint16_t*>(from + shape.factors_at) + factor);
}

__device__ __forceinline__ float f16_value(uint32_t bits) {
  return to_float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// Of any but kFactors. `word`: of load_stored.
__device__ __forceinline__ float stored_value(uint32_t word, const PackedShape& shape, int row) {
  const uint32_t bits = stored_bits(word, shape, row);
  const float value = __uint_as_float((bits & shape.scale_mask) << shape.float_shift);
  return shape.scales == PackedScales::kF16 ? f16_value(bits) : value;
}

// The same, and of kFactors with its factor.
__device__ __forceinline__ float stored_value(uint32_t word,
                                              uint32_t factor,
                                              const PackedShape& shape,
                                              int row) {
  if (shape.scales != PackedScales::kFactors) return stored_value(word, shape, row);
  const uint32_t bits = stored_bits(word, shape, row);
  return f16_value(factor) * static_cast<float>(static_cast<signed char>(bits));
}

__device__ __forceinline__ float stored_minimum(uint32_t word,
                                                uint32_t factor,
                                                const PackedShape& shape,
                                                int row) {
  const float value = stored_value(word, factor, shape, row);
  return shape.scales == PackedScales::kFactors ? -value : value;
}

__device__ __forceinline__ float load_scale(const std::byte* from,
                                            const PackedShape& shape,
                                            int32_t group,
                                            int row) {
  const bool has_factor = shape.scales == PackedScales::kFactors;
  const uint32_t factor = has_factor ? load_factor(from, shape, group, row) : 0;
  return stored_value(load_stored(from, shape, group, row), factor, shape, row);
}

__device__ __forceinline__ float load_minimum(const std::byte* from,
                                              const PackedShape& shape,
                                              int32_t group,
                                              int row) {
  const float value = load_scale(from, shape, group, row);
  return shape.scales == PackedScales::kFactors ? -value : value;
}

// One number, for kernels that need no speed.
__device__ __forceinline__ float packed_value(const std::byte* w,
                                              const PackedShape& shape,
                                              int32_t row,
                                              int32_t col) {
  const std::byte* const panel = w + row / kPanelOutputs * shape.panel_bytes;
  const int in_panel = row % kPanelOutputs;
  const int32_t unit = col / kUnitCols;
  const int in_unit = col % kUnitCols;
  const int half = in_unit / 16;
  const int lane = in_unit % 16 / 4;
  const int code = 4 * half + in_unit % 4;
  const int units = units_of_chunk(shape.codes);
  const std::byte* const from = panel + int64_t{unit / units} * kChunkBytes * kPanelOutputs +
                                (in_panel * 4 + lane) * 16 + unit % units * unit_bytes(shape.codes);
  float value = 0.0F;
  if (shape.codes == PackedCodes::kF8E4M3) {
    value = e4m3_byte<0>(static_cast<uint32_t>(from[code]));
  } else if (shape.codes == PackedCodes::kInt8) {
    value = static_cast<float>(static_cast<int>(from[code]) - 128);
  } else {
    const int nibble = code % 2 * 4 + code / 2;
    const auto place = static_cast<int>(from[nibble / 2]) >> nibble % 2 * 4 & 15;
    const int in_table = static_cast<int>(shape.table[place / 4] >> place % 4 * 8 & 255U) - 128;
    value = static_cast<float>(shape.codes == PackedCodes::kInt4 ? place - shape.offset : in_table);
  }
  const int32_t group = shape.group_of(unit, half);
  value *= load_scale(panel + shape.scales_at, shape, group, in_panel);
  if (shape.has_minima) {
    value += load_minimum(panel + shape.minima_at, shape, group, in_panel);
  }
  return value;
}

}  // namespace tgi::cuda
