// The few routines of BLAS and LAPACK (OpenBLAS, built without threads) that the quantisers need,
// in row-major terms. Each call runs on the calling thread. Any number of them may be made at once;
// where the library has no locks of its own, one waits for the other.
#pragma once

#include <cstdint>

namespace tgi {

// c (m, n) = alpha * op(a) b + beta * c; a is (m, k), or with `transpose_a` stored as (k, m).
void multiply(bool transpose_a,
              int64_t m,
              int64_t n,
              int64_t k,
              float alpha,
              const float* a,
              int64_t a_stride,
              const float* b,
              int64_t b_stride,
              float beta,
              float* c,
              int64_t c_stride);

// c (m, n) = a (m, k) b^T; b is stored as (n, k).
void multiply_by_transpose(int64_t m,
                           int64_t n,
                           int64_t k,
                           const float* a,
                           int64_t a_stride,
                           const float* b,
                           int64_t b_stride,
                           float* c,
                           int64_t c_stride);

// Reads and writes the lower triangle of `a` (n, n): a becomes the inverse of L, where a = L L^T.
// False: a is not positive definite, and the triangle is spoilt.
[[nodiscard]] bool invert_cholesky_factor(int64_t n, float* a);

}  // namespace tgi
