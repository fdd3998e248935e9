// Reading the bytes of a block.
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

inline int byte_at(const std::byte* at) {
  return std::to_integer<int>(*at);
}

// The 16 values that 4 bits stand for in IQ4_NL and IQ4_XS.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace tgi
