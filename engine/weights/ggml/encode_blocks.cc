// Plain numbers, and blocks of 32: see read_blocks.cc.
#include "engine/weights/ggml/encode_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/weights/ggml/block_bytes.h"
#include "engine/weights/ggml/fit_codes.h"
#include "engine/weights/ggml/table_codes.h"

namespace tgi {
namespace {

constexpr int kBlock = 32;
constexpr int kHalf = 16;

void put_nibbles(const int8_t* codes, int offset, std::byte* bytes) {
  for (int i = 0; i < kHalf; ++i) {
    const int both = (codes[i] + offset) | (codes[i + kHalf] + offset) << 4;
    bytes[i] = static_cast<std::byte>(both);
  }
}

void put_five_bits(const int8_t* codes, int offset, std::byte* high_bits, std::byte* bytes) {
  uint32_t high = 0;
  for (int i = 0; i < kHalf; ++i) {
    const int first = codes[i] + offset;
    const int second = codes[i + kHalf] + offset;
    high |= static_cast<uint32_t>(first >> 4) << i;
    high |= static_cast<uint32_t>(second >> 4) << (i + kHalf);
    bytes[i] = static_cast<std::byte>((first & 15) | (second & 15) << 4);
  }
  std::memcpy(high_bits, &high, sizeof high);
}

// Calls encode(x, w, block) for each.
template <int kBlockBytes, typename Encode>
void for_blocks(const float* values,
                int64_t num_blocks,
                const float* importance,
                std::byte* out,
                const Encode& encode) {
  float w[kBlock];
  for (int64_t block = 0; block < num_blocks; ++block) {
    const float* const x = values + block * kBlock;
    weigh<kBlock>(x, importance == nullptr ? nullptr : importance + block * kBlock, w);
    encode(x, w, out + block * kBlockBytes);
  }
}

using Q4 = IntegerCodes<-8, 7>;
using Q5 = IntegerCodes<-16, 15>;
using Q8 = IntegerCodes<-127, 127>;
using U4 = IntegerCodes<0, 15>;
using U5 = IntegerCodes<0, 31>;

// A scale of f16 and codes of one kind; the scale is settled before the codes are.
template <typename Codes>
float put_scale(const float* x, const float* w, std::byte* block, int8_t* codes) {
  const float scale = as_half(fit_scale<Codes, kBlock>(x, w));
  store_half(block, scale);
  choose_codes<Codes, kBlock>(x, scale, 0.0F, codes);
  return scale;
}

template <typename Codes>
void put_scale_and_minimum(const float* x, const float* w, std::byte* block, int8_t* codes) {
  const ScaleAndMinimum fitted = fit_scale_and_minimum<Codes, kBlock>(x, w, true);
  const float scale = as_half(fitted.scale);
  const float minimum = as_half(fitted.minimum);
  store_half(block, scale);
  store_half(block + 2, -minimum);
  choose_codes<Codes, kBlock>(x, scale, minimum, codes);
}

// 2^(exponent - 128), as read_mxfp4 has it.
float mxfp4_scale(int exponent) {
  return std::ldexp(1.0F, exponent - 128);
}

// Of the powers of two near the one that the format's specification takes (Open Compute Project,
// Microscaling Formats 1.0, section 6.3), the one with the least loss.
int fit_exponent(const float* x, const float* w) {
  const float largest = std::fabs(largest_of<kBlock>(x));
  if (largest < kSmallestValue) return 0;
  const int usual = std::ilogb(largest) - 2 + 127;
  int best = 0;
  float least = -1.0F;
  for (int exponent = usual - 1; exponent <= usual + 1; ++exponent) {
    if (exponent < 0 || exponent > 254) continue;
    const float loss = loss_of<Mxfp4Codes, kBlock>(x, w, mxfp4_scale(exponent), 0.0F);
    if (least >= 0.0F && loss >= least) continue;
    least = loss;
    best = exponent;
  }
  return best;
}

}  // namespace

void encode_f32(const float* values, int64_t count, const float* /*importance*/, std::byte* out) {
  std::memcpy(out, values, static_cast<size_t>(count) * sizeof *values);
}

void encode_f16(const float* values, int64_t count, const float* /*importance*/, std::byte* out) {
  for (int64_t i = 0; i < count; ++i) {
    store_half(out + 2 * i, std::clamp(values[i], -kLargestHalf, kLargestHalf));
  }
}

void encode_bf16(const float* values, int64_t count, const float* /*importance*/, std::byte* out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = f32_to_bf16(values[i]);
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

void encode_q4_0(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  for_blocks<18>(values, num_blocks, importance, out, [](const auto* x, const auto* w, auto* to) {
    int8_t codes[kBlock];
    put_scale<Q4>(x, w, to, codes);
    put_nibbles(codes, 8, to + 2);
  });
}

void encode_q4_1(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  for_blocks<20>(values, num_blocks, importance, out, [](const auto* x, const auto* w, auto* to) {
    int8_t codes[kBlock];
    put_scale_and_minimum<U4>(x, w, to, codes);
    put_nibbles(codes, 0, to + 4);
  });
}

void encode_q5_0(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  for_blocks<22>(values, num_blocks, importance, out, [](const auto* x, const auto* w, auto* to) {
    int8_t codes[kBlock];
    put_scale<Q5>(x, w, to, codes);
    put_five_bits(codes, 16, to + 2, to + 6);
  });
}

void encode_q5_1(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  for_blocks<24>(values, num_blocks, importance, out, [](const auto* x, const auto* w, auto* to) {
    int8_t codes[kBlock];
    put_scale_and_minimum<U5>(x, w, to, codes);
    put_five_bits(codes, 0, to + 4, to + 8);
  });
}

// The largest value is met exactly, as by every writer of the type: 8 bits have nothing to search.
void encode_q8_0(const float* values, int64_t num_blocks, const float* importance, std::byte* out) {
  // Codes that the largest value may become; lower ones bring nothing more.
  constexpr int kLeastEnd = 120;
  for_blocks<34>(values, num_blocks, importance, out, [](const auto* x, const auto* w, auto* to) {
    const float largest = std::fabs(largest_of<kBlock>(x));
    float scale = as_half(largest / 127.0F);
    float least = loss_of<Q8, kBlock>(x, w, scale, 0.0F);
    for (int end = 126; end >= kLeastEnd; --end) {
      const float other = as_half(largest / static_cast<float>(end));
      const float loss = loss_of<Q8, kBlock>(x, w, other, 0.0F);
      if (loss >= least) continue;
      least = loss;
      scale = other;
    }
    int8_t codes[kBlock];
    store_half(to, scale);
    choose_codes<Q8, kBlock>(x, scale, 0.0F, codes);
    std::memcpy(to + 2, codes, sizeof codes);
  });
}

void encode_iq4_nl(const float* values,
                   int64_t num_blocks,
                   const float* importance,
                   std::byte* out) {
  for_blocks<18>(values, num_blocks, importance, out, [](const auto* x, const auto* w, auto* to) {
    int8_t codes[kBlock];
    put_scale<Iq4Codes>(x, w, to, codes);
    for (int8_t& code : codes) code = index_of_iq4(code);
    put_nibbles(codes, 0, to + 2);
  });
}

void encode_mxfp4(const float* values,
                  int64_t num_blocks,
                  const float* importance,
                  std::byte* out) {
  for_blocks<17>(values, num_blocks, importance, out, [](const auto* x, const auto* w, auto* to) {
    const int exponent = fit_exponent(x, w);
    int8_t codes[kBlock];
    choose_codes<Mxfp4Codes, kBlock>(x, mxfp4_scale(exponent), 0.0F, codes);
    for (int8_t& code : codes) code = index_of_mxfp4(code);
    to[0] = static_cast<std::byte>(exponent);
    put_nibbles(codes, 0, to + 1);
  });
}

}  // namespace tgi
