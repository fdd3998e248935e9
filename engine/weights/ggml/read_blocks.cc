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

void store_less(const uint8_t (&values)[2 * kHalf], uint8_t offset, int8_t* codes) {
  uint8_t out[2 * kHalf];
  for (int i = 0; i < 2 * kHalf; ++i) out[i] = static_cast<uint8_t>(values[i] - offset);
  std::memcpy(codes, out, sizeof out);
}

void read_nibbles(const std::byte* bytes, uint8_t offset, int8_t* codes) {
  uint8_t values[2 * kHalf];
  split_halves<kHalf>(bytes, values);
  store_less(values, offset, codes);
}

// 16 in each byte whose bit is set, the lowest bit being the first byte's.
uint64_t fifth_bits(int bits) {
  constexpr uint64_t kEach = 0x0101010101010101U;
  const uint64_t own = (kEach * static_cast<uint64_t>(bits)) & 0x8040201008040201U;
  return ((own + kEach * 0x7F) & (kEach * 0x80)) >> 3;
}

void read_five_bits(const std::byte* high_bits,
                    const std::byte* bytes,
                    uint8_t offset,
                    int8_t* codes) {
  uint8_t values[2 * kHalf];
  split_halves<kHalf>(bytes, values);
  uint8_t high[2 * kHalf];
  for (int i = 0; i < 4; ++i) {
    const uint64_t eight = fifth_bits(byte_at(high_bits + i));
    std::memcpy(high + 8 * i, &eight, sizeof eight);
  }
  for (int i = 0; i < 2 * kHalf; ++i) values[i] |= high[i];
  store_less(values, offset, codes);
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
