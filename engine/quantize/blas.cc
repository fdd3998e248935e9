#include "engine/quantize/blas.h"

#include <cblas.h>

#include <mutex>

#include "base/error.h"

// LAPACK has no header of its own; a column-major upper triangle is a row-major lower one.
extern "C" {
void spotrf_(const char* uplo, const int* n, float* a, const int* lda, int* info);
void strtri_(const char* uplo, const char* diag, const int* n, float* a, const int* lda, int* info);
}

namespace tgi {
namespace {

blasint size_of(int64_t value) {
  TGI_CHECK(value >= 0 && value <= INT32_MAX);
  return static_cast<blasint>(value);
}

// OpenBLAS that is built without threads has no locks either, unless it was asked for them (Debian
// does not ask): two calls at once may take the same buffer, and give wrong numbers.
std::unique_lock<std::mutex> lock_library() {
  static std::mutex mutex;
  static const bool has_locks = openblas_get_parallel() != 0;
  return has_locks ? std::unique_lock<std::mutex>() : std::unique_lock(mutex);
}

}  // namespace

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
              int64_t c_stride) {
  const auto lock = lock_library();
  cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, CblasNoTrans, size_of(m),
              size_of(n), size_of(k), alpha, a, size_of(a_stride), b, size_of(b_stride), beta, c,
              size_of(c_stride));
}

void multiply_by_transpose(int64_t m,
                           int64_t n,
                           int64_t k,
                           const float* a,
                           int64_t a_stride,
                           const float* b,
                           int64_t b_stride,
                           float* c,
                           int64_t c_stride) {
  const auto lock = lock_library();
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size_of(m), size_of(n), size_of(k), 1.0F, a,
              size_of(a_stride), b, size_of(b_stride), 0.0F, c, size_of(c_stride));
}

bool invert_cholesky_factor(int64_t n, float* a) {
  const blasint size = size_of(n);
  blasint info = 0;
  const auto lock = lock_library();
  spotrf_("U", &size, a, &size, &info);
  if (info != 0) return false;
  strtri_("U", "N", &size, a, &size, &info);
  return info == 0;
}

}  // namespace tgi
