// Blocks of 256 elements in groups of 16 or 32, whose scales (and minima) are small integers times
// one number of the block.
#include <cstring>

#include "engine/tensor/weight.h"
#include "engine/weights/ggml/block_bytes.h"
#include "engine/weights/ggml/read_blocks.h"

namespace tgi {
namespace {

constexpr int kBlock = 256;

// How scales and minima follow from their factors.
template <int kNumGroups>
void multiply(const GgmlFactors& factors, float* scales, float* minima) {
  for (int group = 0; group < kNumGroups; ++group) {
    scales[group] = factors.scale * static_cast<float>(factors.scales[group]);
    if (minima == nullptr) continue;
    minima[group] = -(factors.minimum * static_cast<float>(factors.minima[group]));
  }
}

template <int kNumGroups, void (*kFactors)(const std::byte*, GgmlFactors&)>
void read_scales(const std::byte* block, float* scales, float* minima) {
  GgmlFactors factors;
  kFactors(block, factors);
  multiply<kNumGroups>(factors, scales, minima);
}

// Loops over bytes that are nothing else: they become vector instructions.
constexpr int kRun = 32;
using Run = uint8_t[kRun];

void load_run(const std::byte* bytes, Run& out) {
  std::memcpy(out, bytes, sizeof out);
}

// Groups 2i and 2i + 1 are the lower and the upper halves of 32 bytes.
void read_halves(const std::byte* bytes, int8_t* codes) {
  for (int pair = 0; pair < kBlock / kRun / 2; ++pair) {
    uint8_t out[2 * kRun];
    split_halves<kRun>(bytes + pair * kRun, out);
    std::memcpy(codes + 2 * pair * kRun, out, sizeof out);
  }
}

// Of 128 elements, 32 bytes hold four times two bits.
int two_bits_of(const std::byte* bytes, int i) {
  return byte_at(bytes + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3;
}

}  // namespace

void factors_of_q2_k(const std::byte* block, GgmlFactors& out) {
  out.scale = half_at(block + 80);
  out.minimum = half_at(block + 82);
  for (int group = 0; group < 16; ++group) {
    const int both = byte_at(block + group);
    out.scales[group] = static_cast<int8_t>(both & 15);
    out.minima[group] = static_cast<int8_t>(both >> 4);
  }
}

void factors_of_q3_k(const std::byte* block, GgmlFactors& out) {
  const std::byte* const packed = block + 96;
  out.scale = half_at(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int low = byte_at(packed + group % 8) >> (group / 8 * 4) & 15;
    const int high = byte_at(packed + 8 + group % 4) >> (group / 4 * 2) & 3;
    out.scales[group] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

void factors_of_q4_k(const std::byte* block, GgmlFactors& out) {
  out.scale = half_at(block);
  out.minimum = half_at(block + 2);
  // Of 6 bits: those of the first four groups in bytes of their own, whose upper bits belong to the
  // last four, whose lower halves share the last four bytes. Four bytes at a time.
  constexpr uint32_t kSixBits = 0x3F3F3F3FU;
  constexpr uint32_t kFourBits = 0x0F0F0F0FU;
  constexpr uint32_t kUpperTwo = 0x30303030U;
  const auto scales = load_as<uint32_t>(block + 4);
  const auto minima = load_as<uint32_t>(block + 8);
  const auto both = load_as<uint32_t>(block + 12);
  const uint32_t scale_bytes[] = {scales & kSixBits,
                                  (both & kFourBits) | (scales >> 2 & kUpperTwo)};
  const uint32_t minimum_bytes[] = {minima & kSixBits,
                                    (both >> 4 & kFourBits) | (minima >> 2 & kUpperTwo)};
  std::memcpy(out.scales, scale_bytes, sizeof scale_bytes);
  std::memcpy(out.minima, minimum_bytes, sizeof minimum_bytes);
}

void factors_of_q6_k(const std::byte* block, GgmlFactors& out) {
  out.scale = half_at(block + 208);
  std::memcpy(out.scales, block + 192, sizeof out.scales);
}

void factors_of_iq4_xs(const std::byte* block, GgmlFactors& out) {
  out.scale = half_at(block);
  const auto high_bits = load_as<uint16_t>(block + 2);
  for (int group = 0; group < 8; ++group) {
    const int low = byte_at(block + 4 + group / 2) >> (group % 2 * 4) & 15;
    const int high = high_bits >> (2 * group) & 3;
    out.scales[group] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

void read_q2_k(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  read_scales<16, factors_of_q2_k>(block, scales, minima);
  for (int i = 0; i < kBlock; ++i) codes[i] = static_cast<int8_t>(two_bits_of(block + 16, i));
}

void read_q3_k(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const std::byte* const high_bits = block;
  read_scales<16, factors_of_q3_k>(block, scales, nullptr);
  for (int i = 0; i < kBlock; ++i) {
    // A bit that is set stands for no offset.
    const bool has_bit = (byte_at(high_bits + i % 32) >> (i / 32) & 1) != 0;
    codes[i] = static_cast<int8_t>(two_bits_of(block + 32, i) - (has_bit ? 0 : 4));
  }
}

void read_q4_k(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  read_scales<8, factors_of_q4_k>(block, scales, minima);
  read_halves(block + 16, codes);
}

void read_q5_k(const std::byte* block, int8_t* codes, float* scales, float* minima) {
  read_scales<8, factors_of_q4_k>(block, scales, minima);
  read_halves(block + 48, codes);
  Run high;
  load_run(block + 16, high);
  for (int group = 0; group < kBlock / kRun; ++group) {
    int8_t* const out = codes + group * kRun;
    for (int i = 0; i < kRun; ++i) {
      out[i] = static_cast<int8_t>(out[i] | (high[i] & 1) << 4);
      high[i] = static_cast<uint8_t>(high[i] >> 1);
    }
  }
}

// Of 128 elements, 64 bytes hold the lower halves of twice 64 and 32 bytes four times two bits.
void read_q6_k(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  read_scales<16, factors_of_q6_k>(block, scales, nullptr);
  for (int half = 0; half < 2; ++half) {
    Run low[2];
    Run high;
    load_run(block + half * 2 * kRun, low[0]);
    load_run(block + half * 2 * kRun + kRun, low[1]);
    load_run(block + kBlock / 2 + half * kRun, high);
    int8_t* const out = codes + half * kBlock / 2;
    for (int i = 0; i < kRun; ++i) {
      out[i] = static_cast<int8_t>(((low[0][i] & 15) | (high[i] & 3) << 4) - 32);
      out[i + kRun] = static_cast<int8_t>(((low[1][i] & 15) | (high[i] >> 2 & 3) << 4) - 32);
      out[i + 2 * kRun] = static_cast<int8_t>(((low[0][i] >> 4) | (high[i] >> 4 & 3) << 4) - 32);
      out[i + 3 * kRun] = static_cast<int8_t>(((low[1][i] >> 4) | (high[i] >> 6) << 4) - 32);
    }
  }
}

void read_iq4_xs(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  read_scales<8, factors_of_iq4_xs>(block, scales, nullptr);
  for (int group = 0; group < 8; ++group) {
    const std::byte* const bytes = block + 8 + group * 16;
    for (int i = 0; i < 16; ++i) {
      const int both = byte_at(bytes + i);
      codes[group * 32 + i] = kIq4Codes[both & 15];
      codes[group * 32 + 16 + i] = kIq4Codes[both >> 4];
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
