// Kernels launched to overlap with the one before them: what they read before they wait for it is
// old, in streams and in graphs.
#include "cuda/kernels/ptx.cuh"
#include "tests/catch.h"
#include "tests/cuda_emulation/test_support.h"

using namespace tgi::cuda_emulation_tests;

namespace {

constexpr unsigned kThreads = 96;

__global__ void count_kernel(int* value) {
  tgi::cuda::wait_for_previous_kernel();
  tgi::cuda::launch_next_kernel();
  if (threadIdx.x == 0) ++*value;
}

// out[i] = *value, read before or after the wait; with a barrier or a collective around it.
__global__ void read_kernel(const int* value, int* out, bool too_early) {
  __shared__ int seen[kThreads];
  const unsigned i = threadIdx.x;
  int read = too_early ? *value : 0;
  if (i % 2 == 0) tgi::cuda::wait_for_previous_kernel();
  __syncthreads();
  if (i % 2 == 1) tgi::cuda::wait_for_previous_kernel();
  tgi::cuda::launch_next_kernel();
  if (!too_early) read = *value;
  seen[i] = read;
  __syncthreads();
  out[i] = __shfl_sync(0xffffffffu, seen[kThreads - 1 - i], static_cast<int>(i % 32));
}

// What a chain of (count, read) pairs reads.
std::vector<int> reads(bool too_early, bool captured) {
  constexpr int kPairs = 3;
  const DeviceArray<int> value(std::vector<int>{0}), out(kPairs * kThreads);
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto enqueue = [&] {
    for (unsigned i = 0; i < kPairs; ++i) {
      launch({.block = kThreads, .overlaps_previous = true, .stream = stream}, count_kernel,
             value.data());
      launch({.block = kThreads, .overlaps_previous = true, .stream = stream}, read_kernel,
             value.data(), out.data() + i * kThreads, too_early);
    }
  };
  if (captured) {
    enqueue();
    require(cudaMemsetAsync(value.data(), 0, sizeof(int), stream));
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    enqueue();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    require(cudaStreamEndCapture(stream, &graph));
    require(cudaGraphInstantiate(&executable, graph));
    require(cudaGraphLaunch(executable, stream));
    require(cudaGraphDestroy(graph));
    require(cudaGraphExecDestroy(executable));
  } else {
    enqueue();
  }
  require(cudaStreamSynchronize(stream));
  require(cudaStreamDestroy(stream));
  const std::vector<int> all = out.values();
  std::vector<int> first;
  for (unsigned i = 0; i < kPairs; ++i) {
    for (unsigned t = 1; t < kThreads; ++t) REQUIRE(all[i * kThreads + t] == all[i * kThreads]);
    first.push_back(all[i * kThreads]);
  }
  return first;
}

}  // namespace

TEST_CASE("a kernel that overlaps reads old values until it waits for the one before it") {
  for (const Order order : kOrders) {
    const OrderGuard guard(order);
    for (const bool captured : {false, true}) {
      CHECK(reads(false, captured) == std::vector<int>{1, 2, 3});
      CHECK(reads(true, captured) == std::vector<int>{0, 1, 2});
    }
  }
}
