// cuBLASLt for what it does best: many rows. One handle per device; calls are captured like
// kernels.
//
// Source: cuBLASLt API (CUDA 13.0). out (rows, outputs) row-major is the column-major (outputs,
// rows) that it writes.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/kernels/matmul.h"

namespace tgi::cuda {

inline constexpr size_t kCublasWorkspaceBytes = size_t{32} << 20;

// cublasLtMatmulAlgo_t as it may be kept on disk: valid for the same library version and device.
using CublasAlgorithm = std::array<uint64_t, 8>;

class Cublas {
 public:
  // For the current device. Throws kUnsupported when the library can't be used.
  Cublas();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  std::string version() const;

  // What the library would try for this shape and matrices at addresses of this alignment
  // (alignment_of), best guess first; at most `count`. The bias is left out. REQUIRES: is_aligned.
  std::vector<CublasAlgorithm> propose(const MatmulLaunch& launch, int count) const;

  // out = x w^T, without the bias. `workspace`: kCublasWorkspaceBytes of device memory. False: the
  // library does not take this algorithm for this shape, and nothing was launched. Throws
  // kDeviceLost.
  [[nodiscard]] bool run(cudaStream_t stream,
                         const MatmulLaunch& launch,
                         const CublasAlgorithm& algorithm,
                         void* workspace) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tgi::cuda
