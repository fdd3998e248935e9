// See cublas_stub.h. The product itself is that of the plain kernel.
#include "tests/cuda/cublas_stub.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "cuda/cublas_library.h"
#include "cuda/kernels/matmul.h"

struct cublasLtContext {};
struct cublasLtMatmulDescStruct {
  cublasOperation_t transpose_a = CUBLAS_OP_N;
};
struct cublasLtMatrixLayoutStruct {
  cudaDataType_t type;
  int64_t rows, cols, ld;
};
struct cublasLtMatmulPreferenceStruct {
  // The library's own default.
  uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace tgi::cuda {
namespace {

struct Algorithm {
  int64_t rows = 0;
  int64_t outputs = 0;
  int64_t alignment = 0;
  auto operator<=>(const Algorithm&) const = default;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

std::mutex mutex;  // ranks have threads of their own

DType dtype_of(cudaDataType_t type) {
  return type == CUDA_R_16BF ? DType::kBF16 : type == CUDA_R_16F ? DType::kF16 : DType::kF32;
}

bool is_capturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status != cudaStreamCaptureStatusNone;
}

cublasStatus_t create(cublasLtHandle_t* out) {
  *out = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
size_t get_version() {
  return 130000;
}
const char* get_status_string(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "another status";
}
cublasStatus_t desc_create(cublasLtMatmulDesc_t* out, cublasComputeType_t, cudaDataType_t) {
  *out = new cublasLtMatmulDescStruct;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t desc_destroy(cublasLtMatmulDesc_t desc) {
  delete desc;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t desc_set_attribute(cublasLtMatmulDesc_t desc,
                                  cublasLtMatmulDescAttributes_t attribute,
                                  const void* value,
                                  size_t size) {
  if (attribute != CUBLASLT_MATMUL_DESC_TRANSA || size != sizeof desc->transpose_a)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&desc->transpose_a, value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_create(
    cublasLtMatrixLayout_t* out, cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld) {
  *out = new cublasLtMatrixLayoutStruct{type, static_cast<int64_t>(rows),
                                        static_cast<int64_t>(cols), ld};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_destroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_create(cublasLtMatmulPreference_t* out) {
  *out = new cublasLtMatmulPreferenceStruct;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_destroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_set_attribute(cublasLtMatmulPreference_t preference,
                                        cublasLtMatmulPreferenceAttributes_t attribute,
                                        const void* value,
                                        size_t size) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return size == sizeof(uint64_t) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
  if (size != sizeof(uint32_t)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
              value, size);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t get_heuristic(cublasLtHandle_t,
                             cublasLtMatmulDesc_t,
                             cublasLtMatrixLayout_t,
                             cublasLtMatrixLayout_t,
                             cublasLtMatrixLayout_t,
                             cublasLtMatrixLayout_t d,
                             cublasLtMatmulPreference_t preference,
                             int count,
                             cublasLtMatmulHeuristicResult_t* results,
                             int* num_found) {
  const std::lock_guard lock(mutex);
  *num_found = 0;
  const CublasStub& stub = cublas_stub();
  if (stub.knows_none && stub.knows_none(d->cols, d->rows)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (count < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const Algorithm algorithm = {
      .rows = d->cols,
      .outputs = d->rows,
      .alignment = *std::min_element(preference->alignments, preference->alignments + 4)};
  results[0] = {};
  std::memcpy(results[0].algo.data, &algorithm, sizeof algorithm);
  *num_found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

bool is_at(const void* pointer, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(alignment) == 0;
}

cublasStatus_t matmul(cublasLtHandle_t,
                      cublasLtMatmulDesc_t desc,
                      const void*,
                      const void* a,
                      cublasLtMatrixLayout_t a_layout,
                      const void* b,
                      cublasLtMatrixLayout_t b_layout,
                      const void*,
                      const void* c,
                      cublasLtMatrixLayout_t,
                      void* d,
                      cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algo,
                      void* workspace,
                      size_t,
                      cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  CublasStub& stub = cublas_stub();
  Algorithm algorithm;
  std::memcpy(&algorithm, algo->data, sizeof algorithm);
  if (desc->transpose_a != CUBLAS_OP_T || c != d || workspace == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm.alignment == 0 || algorithm.outputs != d_layout->rows)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_at(a, algorithm.alignment) || !is_at(b, algorithm.alignment) ||
      !is_at(d, algorithm.alignment)) {
    ++stub.num_misaligned;
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (stub.refuses &&
      stub.refuses(
          {.rows = d_layout->cols, .outputs = d_layout->rows, .made_for_rows = algorithm.rows})) {
    ++stub.num_refused;
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  static std::set<Algorithm> loaded;
  if (loaded.insert(algorithm).second && is_capturing(stream)) {
    ++stub.num_loaded_in_capture;
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  ++stub.num_calls;
  launch_matmul_plain(stream, {.x = {.data = const_cast<void*>(b),
                                     .dtype = dtype_of(b_layout->type),
                                     .rows = b_layout->cols,
                                     .cols = b_layout->rows,
                                     .stride = b_layout->ld},
                               .w = a,
                               .w_stride = a_layout->ld,
                               .outputs = d_layout->rows,
                               .bias = nullptr,
                               .out = {.data = d,
                                       .dtype = dtype_of(d_layout->type),
                                       .rows = d_layout->cols,
                                       .cols = d_layout->rows,
                                       .stride = d_layout->ld}});
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

CublasStub& cublas_stub() {
  static CublasStub stub;
  return stub;
}

const CublasLibrary& cublas() {
  static const CublasLibrary library = {.create = create,
                                        .destroy = destroy,
                                        .get_version = get_version,
                                        .get_status_string = get_status_string,
                                        .matmul = matmul,
                                        .get_heuristic = get_heuristic,
                                        .desc_create = desc_create,
                                        .desc_destroy = desc_destroy,
                                        .desc_set_attribute = desc_set_attribute,
                                        .layout_create = layout_create,
                                        .layout_destroy = layout_destroy,
                                        .preference_create = preference_create,
                                        .preference_destroy = preference_destroy,
                                        .preference_set_attribute = preference_set_attribute};
  return library;
}

}  // namespace tgi::cuda
