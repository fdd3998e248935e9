// The product of low rank that is nearest to a matrix: its truncated singular value decomposition,
// found by random projection.
//
// Source: Halko, Martinsson and Tropp, "Finding structure with randomness", 2011
// (https://arxiv.org/abs/0909.4061), algorithms 4.4 and 5.1: the matrix times a few more random
// vectors than the rank, power iterations, each followed by an orthonormalisation, and the
// eigenvectors of the small matrix that is left (Jacobi's method). The random numbers are always
// the same, and so are the bits of the answer, on any processor and with any number of threads.
#pragma once

#include <cstdint>
#include <vector>

namespace tgi {

// The matrix is about b a.
struct LowRankFactors {
  std::vector<float> a;  // (rank, cols), its rows orthogonal
  std::vector<float> b;  // (rows, rank), its columns orthonormal, or 0 where the rank is lower
};

// `matrix`: (rows, cols). Where rows or cols are at most kSpareVectors more than the rank, the
// nearest product of all; else one that comes near it the faster the singular values fall: where
// those past the vectors are a quarter of the last that is kept, to 1e-5. Cost: about
// 22 * (rank + kSpareVectors) * rows * cols flops.
// REQUIRES: 1 <= rank <= rows, cols.
inline constexpr int64_t kSpareVectors = 32;
LowRankFactors factorise(
    const std::vector<float>& matrix, int64_t rows, int64_t cols, int64_t rank, int num_threads);

}  // namespace tgi
