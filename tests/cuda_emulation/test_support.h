// What the tests of the emulated GPU share.
#pragma once

#include <cuda_emulation.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/catch.h"

namespace tgi::cuda_emulation_tests {

using cuda_emulation::Order;
inline constexpr Order kOrders[] = {Order::kForward, Order::kBackward, Order::kShuffled};

inline void require(cudaError_t error) {
  REQUIRE(std::string(cudaGetErrorName(error)) == "cudaSuccess");
}

// An array in device memory.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    require(cudaMalloc(&data_, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    require(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> out(count_);
    require(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

struct Shape {
  dim3 grid = 1;
  dim3 block = 32;
  size_t shared_bytes = 0;
  bool overlaps_previous = false;
  cudaStream_t stream = nullptr;
};

template <typename... Parameters>
void launch(const Shape& shape,
            void (*kernel)(Parameters...),
            std::type_identity_t<Parameters>... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = shape.stream;
  config.attrs = &overlap;
  config.numAttrs = shape.overlaps_previous ? 1 : 0;
  require(cudaLaunchKernelEx(&config, kernel, arguments...));
}

// What a process says that dies of `what`; "it lived" when it does not.
template <typename What>
std::string last_words(What what) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    what();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    words.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "it lived";
  return words;
}

// The order of this test, the default one after it.
class OrderGuard {
 public:
  explicit OrderGuard(Order order, uint64_t seed = 1) { cuda_emulation::set_order(order, seed); }
  ~OrderGuard() { cuda_emulation::set_order(Order::kShuffled); }
  OrderGuard(const OrderGuard&) = delete;
  OrderGuard& operator=(const OrderGuard&) = delete;
};

}  // namespace tgi::cuda_emulation_tests
