// The other direction of read_blocks.h: values as blocks of ggml's types. The codes, scales and
// minima are those that lose least, by a search of our own: loss is the sum of weight * error^2,
// where a value weighs its importance times sqrt(mean square of the block + value^2).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tgi {

// values: (num_blocks * block_size), finite. importance: as many, not below 0, how much an error of
// each counts; null: all alike. Writes num_blocks * block_bytes.
using EncodeGgmlBlocks = void (*)(const float* values,
                                  int64_t num_blocks,
                                  const float* importance,
                                  std::byte* blocks);

// Plain numbers, rounded to nearest even; beyond the largest f16 to that.
void encode_f32(const float* values, int64_t count, const float* importance, std::byte* out);
void encode_f16(const float* values, int64_t count, const float* importance, std::byte* out);
void encode_bf16(const float* values, int64_t count, const float* importance, std::byte* out);

// Blocks of 32.
void encode_q4_0(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_q4_1(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_q5_0(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_q5_1(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_q8_0(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_iq4_nl(const float* values,
                   int64_t num_blocks,
                   const float* importance,
                   std::byte* out);
void encode_mxfp4(const float* values, int64_t num_blocks, const float* importance, std::byte* out);

// Blocks of 256.
void encode_q4_k(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_q5_k(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_q6_k(const float* values, int64_t num_blocks, const float* importance, std::byte* out);
void encode_iq4_xs(const float* values,
                   int64_t num_blocks,
                   const float* importance,
                   std::byte* out);

}  // namespace tgi
