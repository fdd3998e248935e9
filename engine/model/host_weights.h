// Matrices of a checkpoint that are changed before a device gets them, and rows that are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/tensor/weight.h"

namespace tgi {

// REQUIRES: a dense piece.
HostWeight transpose(HostWeight piece);

// Each row or column divided by its length, and rounded to what it is held in only afterwards.
// Throws kUnsupported where they are integers. REQUIRES: of columns, the whole matrix.
HostWeight divided(const HostWeight& piece, HeadDivision by);

// Throws kInvalidArgument naming the first number of a router that is not finite, where it is
// stored as numbers.
void check_router(const HostWeight& piece);

// `row` (cols) added to each row, likewise.
HostWeight add_to_rows(const HostWeight& piece, std::span<const float> row);

// Layer norm of each of the rows, in place. rows: (any, weight.size()).
void norm_rows(std::span<float> rows,
               std::span<const float> weight,
               std::span<const float> bias,
               float eps);

// (num_positions, cols): what is added to the embedding at each position.
std::vector<float> make_sinusoids(const SinusoidConfig& config,
                                  int32_t num_positions,
                                  int32_t cols);

}  // namespace tgi
