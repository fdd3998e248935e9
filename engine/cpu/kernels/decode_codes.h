// Codes of a KV cache as bf16. Included only by the one source per instruction set; templates over
// the vector type, see make_table.h. The loops are plain: compilers know how to make vectors of
// them, and every value is exact, so that all sets agree.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

template <typename V, CacheCodes kCodes>
[[gnu::always_inline]] inline uint16_t bf16_of_code(std::byte code) {
  if constexpr (kCodes == CacheCodes::kInt8) {
    const auto value = static_cast<float>(static_cast<int8_t>(code));
    return static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value) >> 16);
  } else {
    // An integer times a power of two: below 2^-6 numbers lack the leading 8. No branches, which a
    // compiler would keep for the sake of floating-point exceptions.
    const auto bits = static_cast<int32_t>(code);
    const int32_t magnitude = bits & 0x7F;
    const int32_t is_normal = magnitude > 7 ? 1 : 0;
    const int32_t digits = (magnitude & 7) + is_normal * 8;
    const int32_t exponent = (magnitude >> 3) + 1 - is_normal + 117;
    const float value = static_cast<float>(digits) *
                        __builtin_bit_cast(float, static_cast<uint32_t>(exponent << 23));
    const uint32_t sign_and_nan =
        static_cast<uint32_t>((bits & 0x80) << 8 | (magnitude == 0x7F ? 0x7FC0 : 0));
    return static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value) >> 16 | sign_and_nan);
  }
}

// out[i] = codes[i]; meanwhile the same bytes from `next` on are fetched. REQUIRES: count % 64 ==
// 0.
template <typename V, CacheCodes kCodes>
void decode_codes(const std::byte* codes, const std::byte* next, int64_t count, std::byte* out) {
  for (int64_t i = 0; i < count; i += 64) {
    __builtin_prefetch(next + i);
    uint16_t values[64];
    for (int64_t j = 0; j < 64; ++j) values[j] = bf16_of_code<V, kCodes>(codes[i + j]);
    __builtin_memcpy(out + i * 2, values, sizeof values);
  }
}

}  // namespace tgi
