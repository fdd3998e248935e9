// The backend as the daemon finds it: two C functions.
//
// One rank needs no NCCL; $TGI_NCCL_ALONE makes it go through the library all the same, to prove
// the binding where there is one GPU.
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cuda/cuda_device.h"
#include "cuda/cuda_matrix.h"
#include "cuda/launch.h"
#include "cuda/nccl_communicator.h"
#include "engine/device/backend.h"

namespace tgi::cuda {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  int num_devices() override {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
      throw Error(Code::kUnsupported, "no NVIDIA driver is installed");
    }
    if (driver / 1000 < CUDART_VERSION / 1000) {
      throw Error(
          Code::kUnsupported,
          fmt::format(
              "the NVIDIA driver supports CUDA {}, this program needs {} or later; install a "
              "newer driver",
              version_text(driver), version_text(CUDART_VERSION / 1000 * 1000)));
    }
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
      (void)cudaGetLastError();
      throw Error(Code::kUnsupported,
                  "there is an NVIDIA driver, but no GPU is visible (CUDA_VISIBLE_DEVICES?)");
    }
    check(status, "counting GPUs");
    return count;
  }

  // There are no kernels for f32.
  DType automatic_dtype(DType stored) const override {
    return stored == DType::kF32 ? DType::kBF16 : stored;
  }

  void check_storage(const MatrixStorage& weights, DType kv_cache) const override {
    (void)cuda_matrix_bytes("dense", weights, 1, 1);
    check_cache_dtype(weights.dtype, kv_cache);
  }

  std::unique_ptr<Device> make_device(const DeviceOptions& options) override {
    return std::make_unique<CudaDevice>(options.rank, options);
  }

  std::vector<std::unique_ptr<Communicator>> make_communicators(
      std::span<Device* const> ranks) override {
    if (ranks.size() == 1 && std::getenv("TGI_NCCL_ALONE") == nullptr) {
      std::vector<std::unique_ptr<Communicator>> out;
      out.push_back(std::make_unique<NullCommunicator>());
      return out;
    }
    std::vector<CudaDevice*> devices;
    for (Device* const device : ranks) devices.push_back(static_cast<CudaDevice*>(device));
    return make_nccl_communicators(devices);
  }
};

}  // namespace
}  // namespace tgi::cuda

extern "C" __attribute__((visibility("default"))) int tgi_backend_abi() {
  return tgi::kBackendAbi;
}

extern "C" __attribute__((visibility("default"))) tgi::Backend* tgi_backend() {
  static tgi::cuda::CudaBackend backend;
  return &backend;
}
