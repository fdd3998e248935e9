// One function per type of ggml's blocks, as ReadGgmlBlock (ggml_types.h) says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/weights/ggml/ggml_types.h"

namespace tgi {

// Blocks of 32.
void read_q4_0(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q4_1(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q5_0(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q5_1(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q8_0(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq4_nl(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_mxfp4(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q1_0(const std::byte* block, int8_t* codes, float* scales, float* minima);   // of 128
void read_q2_0(const std::byte* block, int8_t* codes, float* scales, float* minima);   // of 64
void read_nvfp4(const std::byte* block, int8_t* codes, float* scales, float* minima);  // of 64

// Blocks of 256 whose scales are quantised themselves.
void read_q2_k(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q3_k(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q4_k(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q5_k(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_q6_k(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq4_xs(const std::byte* block, int8_t* codes, float* scales, float* minima);
void factors_of_q2_k(const std::byte* block, GgmlFactors& out);
void factors_of_q3_k(const std::byte* block, GgmlFactors& out);
void factors_of_q4_k(const std::byte* block, GgmlFactors& out);
void factors_of_q6_k(const std::byte* block, GgmlFactors& out);
void factors_of_iq4_xs(const std::byte* block, GgmlFactors& out);
void read_tq1_0(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_tq2_0(const std::byte* block, int8_t* codes, float* scales, float* minima);

// Blocks of 256 whose elements are looked up by fours and eights in a grid.
void read_iq1_s(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq1_m(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq2_xxs(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq2_xs(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq2_s(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq3_xxs(const std::byte* block, int8_t* codes, float* scales, float* minima);
void read_iq3_s(const std::byte* block, int8_t* codes, float* scales, float* minima);

}  // namespace tgi
