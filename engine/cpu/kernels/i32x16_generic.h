// Sixteen int32 lanes that add dot products of four bytes, in plain C++: what dot_int.h computes
// with, and the definition of what the other instruction sets must compute (integers: exactly).
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/kernels/f32x16_generic.h"

namespace tgi {

struct I32x16Generic {
  using V = F32x16Generic;
  static constexpr bool kPrefetchesForManyRows = true;

  // 64 unsigned bytes, four for each lane.
  struct Lines {
    uint8_t byte[64];

    [[gnu::always_inline]] static Lines load(const std::byte* from) {
      Lines out;
      __builtin_memcpy(out.byte, from, sizeof out.byte);
      return out;
    }
    [[gnu::always_inline]] Lines lower() const {
      Lines out;
      for (int i = 0; i < 64; ++i) out.byte[i] = byte[i] & 0x0F;
      return out;
    }
    [[gnu::always_inline]] Lines upper() const {
      Lines out;
      for (int i = 0; i < 64; ++i) out.byte[i] = static_cast<uint8_t>(byte[i] >> 4);
      return out;
    }
    template <int kBits, int kPlace>
    [[gnu::always_inline]] Lines with_upper(const Lines& line) const {
      Lines out;
      for (int i = 0; i < 64; ++i) {
        const int bits = line.byte[i] >> (kPlace * kBits) & ((1 << kBits) - 1);
        out.byte[i] = static_cast<uint8_t>(byte[i] | bits << 4);
      }
      return out;
    }
    [[gnu::always_inline]] Lines looked_up(const uint8_t (&table)[16]) const {
      Lines out;
      for (int i = 0; i < 64; ++i) out.byte[i] = table[byte[i]];
      return out;
    }
    [[gnu::always_inline]] Lines minus(int offset) const {
      Lines out;
      for (int i = 0; i < 64; ++i) out.byte[i] = static_cast<uint8_t>(byte[i] - offset);
      return out;
    }
    [[gnu::always_inline]] void store(std::byte* to) const {
      __builtin_memcpy(to, byte, sizeof byte);
    }
  };

  int32_t lane[16];

  [[gnu::always_inline]] static I32x16Generic set1(int32_t value) {
    I32x16Generic out;
    for (int32_t& each : out.lane) each = value;
    return out;
  }
  // x: four signed bytes, the same for all lanes.
  [[gnu::always_inline]] void add_dot(const Lines& lines, const std::byte* x) {
    int8_t value[4];
    __builtin_memcpy(value, x, sizeof value);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 4; ++j) lane[i] += lines.byte[4 * i + j] * value[j];
    }
  }
  [[gnu::always_inline]] V to_float() const { return V::from_ints(lane); }
};

}  // namespace tgi
