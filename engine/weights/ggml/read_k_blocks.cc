// Blocks of 256 elements in groups of 16 or 32, whose scales (and minima) are small integers times
// one number of the block.
#include "engine/weights/ggml/block_bytes.h"
#include "engine/weights/ggml/read_blocks.h"

namespace tgi {
namespace {

constexpr int kBlock = 256;

// Scales and minima of 6 bits: of the first four groups in bytes of their own, whose upper bits
// belong to the last four, whose lower halves share the last four bytes.
struct SixBits {
  int scale = 0;
  int minimum = 0;
};

SixBits six_bits(const std::byte* packed, int group) {
  if (group < 4) return {byte_at(packed + group) & 63, byte_at(packed + group + 4) & 63};
  const int both = byte_at(packed + group + 4);
  return {(both & 15) | (byte_at(packed + group - 4) >> 6) << 4,
          (both >> 4) | (byte_at(packed + group) >> 6) << 4};
}

void read_six_bits(const std::byte* block, float* scales, float* minima) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int group = 0; group < 8; ++group) {
    const SixBits both = six_bits(block + 4, group);
    scales[group] = scale * static_cast<float>(both.scale);
    minima[group] = -(minimum * static_cast<float>(both.minimum));
  }
}

// Groups 2i and 2i + 1 are the lower and the upper halves of 32 bytes.
int nibble_of(const std::byte* bytes, int i) {
  const int both = byte_at(bytes + i / 64 * 32 + i % 32);
  return i % 64 < 32 ? both & 15 : both >> 4;
}

// Of 128 elements, 32 bytes hold four times two bits.
int two_bits_of(const std::byte* bytes, int i) {
  return byte_at(bytes + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

}  // namespace

void read_q2_k(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  const float scale = half_at(block + 80);
  const float minimum = half_at(block + 82);
  for (int group = 0; group < 16; ++group) {
    const int both = byte_at(block + group);
    scales[group] = scale * static_cast<float>(both & 15);
    minima[group] = -(minimum * static_cast<float>(both >> 4));
  }
  for (int i = 0; i < kBlock; ++i) codes[i] = static_cast<int8_t>(two_bits_of(block + 16, i));
}

void read_q3_k(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const std::byte* const high_bits = block;
  const std::byte* const packed = block + 96;
  const float scale = half_at(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int low = byte_at(packed + group % 8) >> (group / 8 * 4) & 15;
    const int high = byte_at(packed + 8 + group % 4) >> (group / 4 * 2) & 3;
    scales[group] = scale * static_cast<float>((low | high << 4) - 32);
  }
  for (int i = 0; i < kBlock; ++i) {
    // A bit that is set stands for no offset.
    const bool has_bit = (byte_at(high_bits + i % 32) >> (i / 32) & 1) != 0;
    codes[i] = static_cast<int8_t>(two_bits_of(block + 32, i) - (has_bit ? 0 : 4));
  }
}

void read_q4_k(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  read_six_bits(block, scales, minima);
  for (int i = 0; i < kBlock; ++i) codes[i] = static_cast<int8_t>(nibble_of(block + 16, i));
}

void read_q5_k(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  read_six_bits(block, scales, minima);
  for (int i = 0; i < kBlock; ++i) {
    const int high = byte_at(block + 16 + i % 32) >> (i / 32) & 1;
    codes[i] = static_cast<int8_t>(nibble_of(block + 48, i) | high << 4);
  }
}

void read_q6_k(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block + 208);
  for (int group = 0; group < 16; ++group) {
    scales[group] = scale * static_cast<float>(load_as<int8_t>(block + 192 + group));
  }
  for (int i = 0; i < kBlock; ++i) {
    const int both = byte_at(block + i / 128 * 64 + i % 64);
    const int low = i % 128 < 64 ? both & 15 : both >> 4;
    codes[i] = static_cast<int8_t>((low | two_bits_of(block + 128, i) << 4) - 32);
  }
}

void read_iq4_xs(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block);
  const auto high_bits = load_as<uint16_t>(block + 2);
  for (int group = 0; group < 8; ++group) {
    const int low = byte_at(block + 4 + group / 2) >> (group % 2 * 4) & 15;
    const int high = high_bits >> (2 * group) & 3;
    scales[group] = scale * static_cast<float>((low | high << 4) - 32);
    const std::byte* const bytes = block + 8 + group * 16;
    for (int i = 0; i < 16; ++i) {
      const int both = byte_at(bytes + i);
      codes[group * 32 + i] = kIq4Values[both & 15];
      codes[group * 32 + 16 + i] = kIq4Values[both >> 4];
    }
  }
}

// A byte holds five digits to base 3, or four: the byte times a power of 3 begins with one of them.
void read_tq1_0(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  constexpr int kPowers[] = {1, 3, 9, 27, 81};
  scales[0] = half_at(block + 52);
  const auto read = [&](const std::byte* bytes, int count, int digits) {
    for (int digit = 0; digit < digits; ++digit) {
      for (int i = 0; i < count; ++i) {
        const int shifted = byte_at(bytes + i) * kPowers[digit] & 255;
        *codes++ = static_cast<int8_t>((shifted * 3 >> 8) - 1);
      }
    }
  };
  read(block, 32, 5);
  read(block + 32, 16, 5);
  read(block + 48, 4, 4);
}

void read_tq2_0(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  scales[0] = half_at(block + 64);
  for (int i = 0; i < kBlock; ++i) codes[i] = static_cast<int8_t>(two_bits_of(block, i) - 1);
}

}  // namespace tgi
