// The numbers of a model without files (load format dummy): element i of a tensor is a hash of the
// tensor's key and i, the same wherever it is computed, so that a device may make its weights
// itself. Never zero everywhere: a GPU that multiplies zeros draws less power and runs faster than
// it would.
//
// The hash is of shifts and additions only, so that compilers turn it into vector code for the
// plainest instruction set.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/tensor/tensor.h"

namespace tgi {

struct RandomKey {
  uint32_t first = 0;
  uint32_t second = 0;
};

// A part of a random tensor, of which `dtype` says how it would be stored: bf16 or f32.
struct RandomPart {
  RandomKey key;
  // Row r, column c of the part is element first_element + r * row_stride + c * col_stride.
  int64_t first_element = 0;
};

constexpr uint32_t hash_counter(RandomKey key, uint32_t counter) {
  uint32_t x = key.first + counter * 0x9e3779b9U;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  x += key.second;
  x ^= x >> 16;
  x += x << 9;
  x ^= x >> 11;
  return x;
}

// Uniform with a standard deviation of 0.02, as models are initialised: 0.02 * sqrt(3) / 32768.
inline constexpr float kRandomWeightScale = 1.05715992e-06F;

// Bits 31..16 of a bf16 element are those of the float. Two elements share a hash: the even one has
// its low half.
constexpr uint32_t random_bf16_bits(RandomKey key, int64_t element) {
  const uint32_t bits = hash_counter(key, static_cast<uint32_t>(element / 2));
  const uint32_t half = element % 2 == 0 ? bits << 16 : bits;
  const float value = static_cast<float>(static_cast<int32_t>(half) >> 16) * kRandomWeightScale;
  return std::bit_cast<uint32_t>(value) & 0xffff0000U;
}

constexpr float random_f32(RandomKey key, int64_t element) {
  const uint32_t bits = hash_counter(key, static_cast<uint32_t>(element));
  return static_cast<float>(static_cast<int32_t>(bits) >> 16) * kRandomWeightScale;
}

constexpr float random_weight(DType dtype, RandomKey key, int64_t element) {
  return dtype == DType::kF32 ? random_f32(key, element)
                              : std::bit_cast<float>(random_bf16_bits(key, element));
}

}  // namespace tgi
