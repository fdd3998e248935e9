// Kernels that are wrong: what the order of threads shows, and what ends the process.
#include <chrono>
#include <cstdio>

#include "cuda/kernels/ptx.cuh"
#include "tests/catch.h"
#include "tests/cuda_emulation/test_support.h"

using namespace tgi::cuda_emulation_tests;

namespace {

constexpr unsigned kFull = 0xffffffffu;

__global__ void reverse_kernel(int* out, bool barrier) {
  __shared__ int values[256];
  const unsigned i = threadIdx.x;
  values[i] = static_cast<int>(i + blockIdx.x);
  if (barrier) __syncthreads();
  out[blockIdx.x * 256 + i] = values[255 - i];
}

// The same between the lanes of a warp.
__global__ void reverse_warp_kernel(int* out, bool barrier) {
  __shared__ int values[32];
  const unsigned i = threadIdx.x;
  values[i] = static_cast<int>(i + blockIdx.x);
  if (barrier) __syncwarp();
  out[blockIdx.x * 32 + i] = values[31 - i];
  __syncwarp();  // the next block has the same memory
}

// Whether some block read something else than what its threads wrote.
template <typename Kernel>
bool is_wrong(Kernel kernel, unsigned threads, bool barrier) {
  constexpr unsigned kBlocks = 4;
  const DeviceArray<int> to(kBlocks * threads);
  launch({.grid = kBlocks, .block = threads}, kernel, to.data(), barrier);
  const std::vector<int> out = to.values();
  for (unsigned i = 0; i < out.size(); ++i) {
    if (out[i] != static_cast<int>(threads - 1 - i % threads + i / threads)) return true;
  }
  return false;
}

__global__ void order_kernel(int* out, int* next) {
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(next, 1);
}

enum class Wrong {
  kLeftBarrier,
  kLeftCollective,
  kTwoCollectives,
  kBarrierAndCollective,
  kTwoBarriers,
  kPartOfWarp,
  kBeyondShared,
  kNoWait,
};
__global__ void wrong_kernel(Wrong wrong) {
  const unsigned i = threadIdx.x;
  switch (wrong) {
    case Wrong::kLeftBarrier:
      if (i >= 40) return;
      __syncthreads();
      break;
    case Wrong::kLeftCollective:
      if (i % 32 == 3) return;
      __shfl_sync(kFull, i, 0);
      break;
    case Wrong::kTwoCollectives:
      if (i % 2 == 0) {
        __shfl_sync(kFull, i, 0);
      } else {
        __ballot_sync(kFull, 1);
      }
      break;
    case Wrong::kBarrierAndCollective:
      if (i % 32 < 8) {
        __syncthreads();
      } else {
        __syncwarp();
      }
      break;
    case Wrong::kTwoBarriers:
      if (i < 32) {
        __syncthreads();
      } else {
        __syncthreads_or(1);
      }
      break;
    case Wrong::kPartOfWarp:
      if (i % 32 < 16) __shfl_sync(0xffffu, i, 0);
      break;
    case Wrong::kBeyondShared:
      if (i == 0) {
        static_cast<volatile std::byte*>(tgi::cuda::dynamic_shared())[100] = std::byte{1};
      }
      break;
    case Wrong::kNoWait:
      break;
  }
}

std::string words_of(Wrong wrong) {
  return last_words([wrong] {
    launch({.grid = dim3(1, 2),
            .block = 64,
            .shared_bytes = 100,
            .overlaps_previous = wrong == Wrong::kNoWait},
           wrong_kernel, wrong);
    cudaDeviceSynchronize();
  });
}

__global__ void poll_kernel(int* flag, int* out) {
  if (threadIdx.x == 37) {
    *static_cast<volatile int*>(flag) = 5;
    return;
  }
  while (*static_cast<volatile int*>(flag) != 5) __nanosleep(20);
  atomicAdd(out, 1);
}

__global__ void busy_kernel(float* out) {
  float sum = static_cast<float>(threadIdx.x);
  for (int i = 0; i < 10; ++i) {
    sum += __shfl_xor_sync(kFull, sum, 1);
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

}  // namespace

TEST_CASE("a missing barrier shows in some order of threads") {
  bool shown = false, warp_shown = false;
  for (const Order order : kOrders) {
    const OrderGuard guard(order);
    CHECK_FALSE(is_wrong(reverse_kernel, 256, true));
    CHECK_FALSE(is_wrong(reverse_warp_kernel, 32, true));
    if (order == Order::kShuffled) {
      CHECK(is_wrong(reverse_kernel, 256, false));
      CHECK(is_wrong(reverse_warp_kernel, 32, false));
    }
    shown = shown || is_wrong(reverse_kernel, 256, false);
    warp_shown = warp_shown || is_wrong(reverse_warp_kernel, 32, false);
  }
  CHECK(shown);
  CHECK(warp_shown);
}

TEST_CASE("blocks run in the order that was asked for, each once") {
  const auto order_of = [](Order order, uint64_t seed) {
    const OrderGuard guard(order, seed);
    const DeviceArray<int> to(36), next(std::vector<int>{0});
    launch({.grid = 36}, order_kernel, to.data(), next.data());
    return to.values();
  };
  std::vector<int> ascending(36);
  for (int i = 0; i < 36; ++i) ascending[static_cast<size_t>(i)] = i;
  CHECK(order_of(Order::kForward, 1) == ascending);
  CHECK(order_of(Order::kBackward, 1) == std::vector<int>(ascending.rbegin(), ascending.rend()));
  std::vector<int> shuffled = order_of(Order::kShuffled, 1);
  CHECK(shuffled != ascending);
  CHECK(shuffled != order_of(Order::kShuffled, 2));
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == ascending);
}

TEST_CASE("threads that wait for others that never come end the process") {
  using Catch::Contains;
  CHECK_THAT(words_of(Wrong::kLeftBarrier), Contains("wrong_kernel") && Contains("of (1, 2, 1)") &&
                                                Contains("threads 0-31 wait at __syncthreads") &&
                                                Contains("threads 32-39 wait at __syncthreads") &&
                                                Contains("threads 40-63 have left the kernel"));
  CHECK_THAT(words_of(Wrong::kLeftCollective),
             Contains("wait at a shuffle") && Contains("have left the kernel"));
  CHECK_THAT(words_of(Wrong::kTwoCollectives), Contains("wait for others"));
  CHECK_THAT(words_of(Wrong::kBarrierAndCollective),
             Contains("wait at __syncwarp") && Contains("wait at __syncthreads"));
  CHECK_THAT(words_of(Wrong::kTwoBarriers), Contains("two kinds of __syncthreads"));
}

TEST_CASE("what a warp, a block or a launch must not do ends the process") {
  using Catch::Contains;
  CHECK_THAT(words_of(Wrong::kPartOfWarp), Contains("the mask 0000ffff"));
  CHECK_THAT(
      words_of(Wrong::kBeyondShared),
      Contains("writes byte 100 of its dynamic shared memory") || Contains("AddressSanitizer"));
  CHECK_THAT(words_of(Wrong::kNoWait), Contains("no thread calls wait_for_previous_kernel"));
  CHECK_THAT(last_words([] { launch({.block = 1025}, wrong_kernel, Wrong::kNoWait); }),
             Contains("too many threads"));
  CHECK_THAT(last_words([] { launch({.shared_bytes = 49153}, wrong_kernel, Wrong::kNoWait); }),
             Contains("more shared memory than is allowed"));
  CHECK_THAT(last_words([] { __syncthreads(); }), Contains("only a kernel may call this"));
}

TEST_CASE("more shared memory has to be allowed, up to 227 KiB") {
  constexpr int kMost = 227 << 10;
  CHECK(cudaFuncSetAttribute(reverse_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             kMost + 1) == cudaErrorInvalidValue);
  cudaGetLastError();
  require(cudaFuncSetAttribute(reverse_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost));
  const DeviceArray<int> to(256);
  launch({.block = 256, .shared_bytes = kMost}, reverse_kernel, to.data(), true);
  CHECK(to.values()[0] == 255);
}

TEST_CASE("a thread that polls lets the others run") {
  for (const Order order : kOrders) {
    const OrderGuard guard(order);
    const DeviceArray<int> flag(std::vector<int>{0}), out(std::vector<int>{0});
    launch({.block = 64}, poll_kernel, flag.data(), out.data());
    CHECK(out.values()[0] == 63);
  }
}

TEST_CASE("speed of the emulation", "[.][bench]") {
  const DeviceArray<float> out(256);
  const auto before = tgi::cuda_emulation::counters();
  const auto start = std::chrono::steady_clock::now();
  launch({.grid = 2000, .block = 256}, busy_kernel, out.data());
  cudaDeviceSynchronize();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto after = tgi::cuda_emulation::counters();
  std::printf("%.1f million switches/s, %.2f million threads/s, %.3f s\n",
              static_cast<double>(after.switches - before.switches) / seconds.count() / 1e6,
              static_cast<double>(after.threads - before.threads) / seconds.count() / 1e6,
              seconds.count());
}
