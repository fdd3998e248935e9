// Blocks of 256 elements that are looked up, four or eight at a time, in a grid of good ones; signs
// are stored apart. Elements of IQ1 have an eighth added or taken away: their codes are eight times
// as large.
#include <bit>
#include <span>

#include "engine/weights/ggml/block_bytes.h"
#include "engine/weights/ggml/read_blocks.h"

namespace tgi {
namespace {

#include "engine/weights/ggml/grids.inc"

// Rows of kCount elements, each in 8 / 4 = 2 bits of a number for eight of them, in 3 for four.
template <int kCount>
void look_up(uint16_t row, const int8_t* values, int8_t* out) {
  constexpr int kBits = kCount == 8 ? 2 : 3;
  for (int i = 0; i < kCount; ++i) out[i] = values[row >> (kBits * i) & ((1 << kBits) - 1)];
}

void negate(int signs, int count, int8_t* codes) {
  for (int i = 0; i < count; ++i) {
    if ((signs >> i & 1) != 0) codes[i] = static_cast<int8_t>(-codes[i]);
  }
}

// Seven signs; the eighth makes the number of negative ones even.
int with_parity(uint32_t signs) {
  return static_cast<int>(signs | (std::popcount(signs) % 2 != 0 ? 128U : 0U));
}

int half_byte(const std::byte* bytes, int index) {
  return byte_at(bytes + index / 2) >> (index % 2 * 4) & 15;
}

float between(float scale, int step, float share) {
  return scale * (0.5F + static_cast<float>(step)) * share;
}

}  // namespace

void read_iq2_xxs(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const std::byte* const rows = block + 2 + group * 8;
    const auto rest = load_as<uint32_t>(rows + 4);
    scales[group] = between(scale, static_cast<int>(rest >> 28), 0.25F);
    for (int i = 0; i < 4; ++i, codes += 8) {
      look_up<8>(kIq2XxsGrid[byte_at(rows + i)], kIq2XxsValues, codes);
      negate(with_parity(rest >> (7 * i) & 127), 8, codes);
    }
  }
}

void read_iq2_xs(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block);
  for (int group = 0; group < 16; ++group) {
    scales[group] = between(scale, half_byte(block + 66, group), 0.25F);
    for (int i = 0; i < 2; ++i, codes += 8) {
      const auto row = load_as<uint16_t>(block + 2 + (group * 2 + i) * 2);
      look_up<8>(kIq2XsGrid[row & 511], kIq2XsValues, codes);
      negate(with_parity(row >> 9), 8, codes);
    }
  }
}

void read_iq2_s(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block);
  for (int group = 0; group < 16; ++group) {
    scales[group] = between(scale, half_byte(block + 74, group), 0.25F);
    for (int i = 0; i < 2; ++i, codes += 8) {
      const int index = group * 2 + i;
      const int high = byte_at(block + 66 + index / 4) >> (index % 4 * 2) & 3;
      look_up<8>(kIq2SGrid[byte_at(block + 2 + index) | high << 8], kIq2SValues, codes);
      negate(byte_at(block + 34 + index), 8, codes);
    }
  }
}

void read_iq3_xxs(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const auto rest = load_as<uint32_t>(block + 66 + group * 4);
    scales[group] = between(scale, static_cast<int>(rest >> 28), 0.5F);
    for (int i = 0; i < 4; ++i, codes += 8) {
      const std::byte* const rows = block + 2 + group * 8 + i * 2;
      look_up<4>(kIq3XxsGrid[byte_at(rows)], kIq3XxsValues, codes);
      look_up<4>(kIq3XxsGrid[byte_at(rows + 1)], kIq3XxsValues, codes + 4);
      negate(with_parity(rest >> (7 * i) & 127), 8, codes);
    }
  }
}

void read_iq3_s(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block);
  for (int group = 0; group < 8; ++group) {
    scales[group] = scale * static_cast<float>(1 + 2 * half_byte(block + 106, group));
    for (int i = 0; i < 8; ++i, codes += 4) {
      const int index = group * 8 + i;
      const int high = byte_at(block + 66 + index / 8) >> (index % 8) & 1;
      look_up<4>(kIq3SGrid[byte_at(block + 2 + index) | high << 8], kIq3SValues, codes);
      negate(byte_at(block + 74 + index / 2) >> (index % 2 * 4), 4, codes);
    }
  }
}

namespace {

void look_up_with_eighth(int row, bool is_negative, int8_t* codes) {
  look_up<8>(kIq1SGrid[row], kIq1SValues, codes);
  for (int i = 0; i < 8; ++i) codes[i] = static_cast<int8_t>(codes[i] * 8 + (is_negative ? -1 : 1));
}

}  // namespace

void read_iq1_s(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  const float scale = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const int rest = load_as<uint16_t>(block + 34 + group * 2);
    scales[group] = scale * static_cast<float>(2 * (rest >> 12 & 7) + 1) / 8.0F;
    for (int i = 0; i < 4; ++i, codes += 8) {
      const int row = byte_at(block + 2 + group * 4 + i) | (rest >> (3 * i) & 7) << 8;
      look_up_with_eighth(row, (rest & 0x8000) != 0, codes);
    }
  }
}

void read_iq1_m(const std::byte* block, int8_t* codes, float* scales, float* /*minima*/) {
  // The bits of the block's scale are the upper four of four numbers.
  const std::byte* const packed = block + 48;
  uint16_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    bits = static_cast<uint16_t>(bits | (load_as<uint16_t>(packed + 2 * i) >> 12) << (4 * i));
  }
  const float scale = f16_to_f32(bits);
  for (int group = 0; group < 16; ++group) {
    const int step = load_as<uint16_t>(packed + group / 4 * 2) >> (group % 4 * 3) & 7;
    scales[group] = scale * static_cast<float>(2 * step + 1) / 8.0F;
    for (int i = 0; i < 2; ++i, codes += 8) {
      const int index = group * 2 + i;
      const int rest = half_byte(block + 32, index);
      look_up_with_eighth(byte_at(block + index) | (rest & 7) << 8, (rest & 8) != 0, codes);
    }
  }
}

}  // namespace tgi
