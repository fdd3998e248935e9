// Blocks of 32: a scale, perhaps a minimum, and the codes, the first half of the elements in the
// lower halves of the bytes.
#include "engine/weights/ggml/read_blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "engine/tensor/weight.h"
#include "engine/weights/ggml/block_bytes.h"

namespace tgi {
namespace {

constexpr int kHalf = 16;

void read_nibbles(const std::byte* bytes, int offset, int8_t* codes) {
  for (int i = 0; i < kHalf; ++i) {
    const int both = byte_at(bytes + i);
    codes[i] = static_cast<int8_t>((both & 15) - offset);
    codes[i + kHalf] = static_cast<int8_t>((both >> 4) - offset);
  }
}

void read_five_bits(const std::byte* high_bits, const std::byte* bytes, int offset, int8_t* codes) {
  const auto high = load_as<uint32_t>(high_bits);
  for (int i = 0; i < kHalf; ++i) {
    const int both = byte_at(bytes + i);
    const int first = (both & 15) | static_cast<int>(high >> i & 1) << 4;
    const int second = (both >> 4) | static_cast<int>(high >> (i + kHalf) & 1) << 4;
    codes[i] = static_cast<int8_t>(first - offset);
    codes[i + kHalf] = static_cast<int8_t>(second - offset);
  }
}

void look_up(const std::byte* bytes, int count, const int8_t* values, int8_t* codes) {
  for (int i = 0; i < count; ++i) {
    const int both = byte_at(bytes + i);
    codes[i] = values[both & 15];
    codes[i + count] = values[both >> 4];
  }
}

// Codes of e2m1 are doubled, so that the scale is half of 2^(exponent - 127).
float half_of_power(int exponent) {
  const uint32_t bits =
      exponent < 2 ? uint32_t{0x00200000} << exponent : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

// Half of an e4m3 without a sign; 0x7F is no number and stands for 0.
float half_of_e4m3(int bits) {
  if (bits == 0 || bits == 0x7F) return 0.0F;
  const int exponent = bits >> 3 & 15;
  const auto mantissa = static_cast<float>(bits & 7);
  const float value =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1.0F + mantissa / 8.0F, exponent - 7);
  return value * 0.5F;
}

}  // namespace

void read_q4_0(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_at(block);
  read_nibbles(block + 2, 8, codes);
}

void read_q4_1(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  scales[0] = half_at(block);
  minima[0] = half_at(block + 2);
  read_nibbles(block + 4, 0, codes);
}

void read_q5_0(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_at(block);
  read_five_bits(block + 2, block + 6, 16, codes);
}

void read_q5_1(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  scales[0] = half_at(block);
  minima[0] = half_at(block + 2);
  read_five_bits(block + 4, block + 8, 0, codes);
}

void read_q8_0(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_at(block);
  std::memcpy(codes, block + 2, 32);
}

// A bit each: 1 or -1.
void read_q1_0(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_at(block);
  for (int i = 0; i < 128; ++i) {
    const int bit = byte_at(block + 2 + i / 8) >> i % 8 & 1;
    codes[i] = static_cast<int8_t>(2 * bit - 1);
  }
}

// Two bits each: -1 to 2.
void read_q2_0(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_at(block);
  for (int i = 0; i < 64; ++i) {
    codes[i] = static_cast<int8_t>((byte_at(block + 2 + i / 4) >> 2 * (i % 4) & 3) - 1);
  }
}

void read_iq4_nl(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_at(block);
  look_up(block + 2, kHalf, kIq4Codes, codes);
}

void read_mxfp4(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_of_power(byte_at(block));
  look_up(block + 1, kHalf, kMxfp4Codes, codes);
}

void read_nvfp4(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  for (int group = 0; group < 4; ++group) {
    scales[group] = half_of_e4m3(byte_at(block + group));
    look_up(block + 4 + group * 8, 8, kMxfp4Codes, codes + group * 16);
  }
}

}  // namespace tgi
