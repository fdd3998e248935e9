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

}  // namespace tgi
