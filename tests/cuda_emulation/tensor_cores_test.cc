// ldmatrix, mma and cp.async against plain loops over whole matrices.
#include <cstring>
#include <random>

#include "cuda/kernels/ptx.cuh"
#include "tests/catch.h"
#include "tests/cuda_emulation/test_support.h"

using namespace tgi::cuda_emulation_tests;
using tgi::cuda::bf16;
using tgi::cuda::f16;

namespace {

// out: (lane, 8), four registers of ldmatrix, then four of its transposed kind. in: (32, 8).
__global__ void ldmatrix_kernel(uint32_t* out, const uint16_t* in) {
  auto* shared = reinterpret_cast<uint16_t*>(tgi::cuda::dynamic_shared());
  const unsigned lane = threadIdx.x;
  for (unsigned i = 0; i < 8; ++i) shared[lane * 8 + i] = in[lane * 8 + i];
  __syncwarp();
  uint32_t registers[4];
  tgi::cuda::ldmatrix_x4(registers, shared + lane * 8);
  for (unsigned i = 0; i < 4; ++i) out[lane * 8 + i] = registers[i];
  tgi::cuda::ldmatrix_x4_transposed(registers, shared + lane * 8);
  // What another lane writes from here on, nobody may see.
  for (unsigned i = 0; i < 8; ++i) shared[lane * 8 + i] = 0xdead;
  for (unsigned i = 0; i < 4; ++i) out[lane * 8 + 4 + i] = registers[i];
}

template <typename T>
uint32_t pair_of(const T* low, const T* high) {
  uint16_t bits[2];
  std::memcpy(&bits[0], low, 2);
  std::memcpy(&bits[1], high, 2);
  return static_cast<uint32_t>(bits[1]) << 16 | bits[0];
}

// d (16, 8) += a (16, 16) b (16, 8), fragments as cuda/kernels/ptx.cuh tells.
template <typename T>
__global__ void mma_kernel(float* d, const T* a, const T* b) {
  const unsigned g = threadIdx.x / 4, t = threadIdx.x % 4;
  uint32_t from_a[4], from_b[2];
  for (unsigned i = 0; i < 4; ++i) {
    const T* at = a + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    from_a[i] = pair_of(at, at + 1);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const T* at = b + (2 * t + 8 * i) * 8 + g;
    from_b[i] = pair_of(at, at + 8);
  }
  float* rows[] = {d + g * 8 + 2 * t, d + (g + 8) * 8 + 2 * t};
  float sums[4] = {rows[0][0], rows[0][1], rows[1][0], rows[1][1]};
  tgi::cuda::mma_16x8x16<T>(sums, from_a, from_b);
  rows[0][0] = sums[0];
  rows[0][1] = sums[1];
  rows[1][0] = sums[2];
  rows[1][1] = sums[3];
}

// out: what is seen after each of: nothing, commit, a wait that allows one group, a wait for all;
// for two groups of one copy.
__global__ void copy_kernel(float4* out, const float4* in, bool valid) {
  __shared__ float4 in_static[1];
  auto* shared = reinterpret_cast<float4*>(tgi::cuda::dynamic_shared());
  tgi::cuda::cp_async_16(shared, in, valid);
  out[0] = shared[0];
  tgi::cuda::cp_async_commit();
  out[1] = shared[0];
  tgi::cuda::cp_async_16(in_static, in + 1, valid);
  tgi::cuda::cp_async_commit();
  tgi::cuda::cp_async_wait<1>();
  out[2] = shared[0];
  out[3] = in_static[0];
  tgi::cuda::cp_async_wait<0>();
  out[4] = in_static[0];
}

__global__ void bad_copy_kernel(const float* from, int what) {
  std::byte* shared = tgi::cuda::dynamic_shared();
  alignas(16) float local[4];
  if (what == 0) tgi::cuda::cp_async_16(shared + 4, from);
  if (what == 1) tgi::cuda::cp_async_16(shared, from + 1);
  if (what == 2) tgi::cuda::cp_async_16(shared + 64, from);
  if (what == 3) tgi::cuda::cp_async_16(local, from);
  if (what == 4) tgi::cuda::cp_async_16(shared, shared + 16);
  if (what == 5) static_cast<void>(tgi::cuda::load_streaming(from + 1));
}

}  // namespace

TEST_CASE("ldmatrix gives each lane its elements of four matrices") {
  std::vector<uint16_t> in(256);
  std::mt19937 random(5);
  for (uint16_t& value : in) value = static_cast<uint16_t>(random());
  for (const Order order : kOrders) {
    const OrderGuard guard(order);
    const DeviceArray<uint16_t> from(in);
    const DeviceArray<uint32_t> to(256);
    launch({.shared_bytes = 512}, ldmatrix_kernel, to.data(), from.data());
    const std::vector<uint32_t> out = to.values();
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned m = 0; m < 4; ++m) {
        const auto at = [&](unsigned row, unsigned column) {
          return static_cast<uint32_t>(in[(m * 8 + row) * 8 + column]);
        };
        const unsigned g = lane / 4, t = lane % 4;
        REQUIRE(out[lane * 8 + m] == (at(g, 2 * t) | at(g, 2 * t + 1) << 16));
        REQUIRE(out[lane * 8 + 4 + m] == (at(2 * t, g) | at(2 * t + 1, g) << 16));
      }
    }
  }
}

TEMPLATE_TEST_CASE("mma multiplies matrices", "", bf16, f16) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::vector<TestType> a(256), b(128);
    std::vector<float> d(128);
    for (TestType& value : a) value = TestType(normal(random));
    for (TestType& value : b) value = TestType(normal(random));
    for (float& value : d) value = normal(random);
    const DeviceArray<TestType> in_a(a), in_b(b);
    const DeviceArray<float> out(d);
    launch({}, mma_kernel<TestType>, out.data(), in_a.data(), in_b.data());
    const std::vector<float> got = out.values();
    for (size_t row = 0; row < 16; ++row) {
      for (size_t column = 0; column < 8; ++column) {
        double sum = d[row * 8 + column];
        for (size_t k = 0; k < 16; ++k) {
          sum += static_cast<double>(tgi::cuda::to_float(a[row * 16 + k])) *
                 static_cast<double>(tgi::cuda::to_float(b[k * 8 + column]));
        }
        REQUIRE(got[row * 8 + column] == Approx(sum).margin(1e-5));
      }
    }
  }
}

TEST_CASE("cp.async arrives when its group is waited for, and is NaN before") {
  const std::vector<float> in = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const bool valid : {true, false}) {
    const DeviceArray<float> from(in);
    const DeviceArray<float> to(20);
    launch({.block = 1, .shared_bytes = 16}, copy_kernel, reinterpret_cast<float4*>(to.data()),
           reinterpret_cast<const float4*>(from.data()), valid);
    const std::vector<float> out = to.values();
    for (size_t i = 0; i < 4; ++i) {
      CHECK((std::isnan(out[i]) && std::isnan(out[4 + i]) && std::isnan(out[12 + i])));
      CHECK(out[8 + i] == (valid ? in[i] : 0.0f));
      CHECK(out[16 + i] == (valid ? in[4 + i] : 0.0f));
    }
  }
}

TEST_CASE("addresses that the hardware would refuse end the process") {
  const DeviceArray<float> from(std::vector<float>(64));
  const char* words[] = {"not a multiple of 16", "not a multiple of 16",
                         "not in the 64 bytes",  "not in the 64 bytes",
                         "is shared memory",     "load_streaming: the address"};
  for (int what = 0; what < 6; ++what) {
    INFO(what);
    CHECK_THAT(last_words([&] {
                 launch({.block = 1, .shared_bytes = 64}, bad_copy_kernel, from.data(), what);
                 cudaDeviceSynchronize();
               }),
               Catch::Contains(words[what]) && Catch::Contains("bad_copy_kernel"));
  }
}
