// Reading and writing the bytes of a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/tensor/half.h"

namespace tgi {

template <typename T>
T load_as(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline float half_at(const std::byte* at) {
  return f16_to_f32(load_as<uint16_t>(at));
}

inline void store_half(std::byte* at, float value) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof bits);
}

inline int byte_at(const std::byte* at) {
  return std::to_integer<int>(*at);
}

// The lower halves of so many bytes, then the upper ones. Loops over bytes that are nothing else:
// they become vector instructions.
template <int kCount>
void split_halves(const std::byte* bytes, uint8_t (&out)[2 * kCount]) {
  uint8_t both[kCount];
  std::memcpy(both, bytes, sizeof both);
  for (int i = 0; i < kCount; ++i) out[i] = both[i] & 15;
  for (int i = 0; i < kCount; ++i) out[i + kCount] = both[i] >> 4;
}

}  // namespace tgi
