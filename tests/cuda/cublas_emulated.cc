// cuda/cublas.h without cuBLASLt: the plain kernel, one algorithm.
#include "cuda/cublas.h"

namespace tgi::cuda {

struct Cublas::State {};

Cublas::Cublas() = default;
Cublas::~Cublas() = default;

std::string Cublas::version() const {
  return "emulated";
}

std::vector<CublasAlgorithm> Cublas::propose(const MatmulLaunch& /*launch*/, int /*count*/) const {
  return {CublasAlgorithm{1}};
}

void Cublas::run(cudaStream_t stream,
                 const MatmulLaunch& launch,
                 const CublasAlgorithm& /*algorithm*/,
                 void* /*workspace*/) const {
  MatmulLaunch without_bias = launch;
  without_bias.bias = nullptr;
  launch_matmul_plain(stream, without_bias);
}

}  // namespace tgi::cuda
