// The emulated GPU as a whole: two kernels as cuda/kernels has them.
#include <cuda_emulation.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "tests/catch.h"
#include "tests/cuda_emulation/sample_kernels.h"

namespace samples = tgi::cuda_emulation_samples;
using tgi::cuda_emulation::Order;

template <typename T>
T* to_device(const std::vector<T>& values) {
  T* out = nullptr;
  REQUIRE(cudaMalloc(&out, values.size() * sizeof(T)) == cudaSuccess);
  REQUIRE(cudaMemcpy(out, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) ==
          cudaSuccess);
  return out;
}
template <typename T>
std::vector<T> to_host(const T* memory, size_t count) {
  std::vector<T> out(count);
  REQUIRE(cudaMemcpy(out.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
  return out;
}

TEST_CASE("softmax by shuffles and shared memory") {
  const int rows = 7, columns = 333;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> x(rows * columns);
  for (float& value : x) value = normal(random);
  float* in = to_device(x);
  float* out = to_device(std::vector<float>(x.size()));
  for (const Order order : {Order::kForward, Order::kBackward, Order::kShuffled}) {
    tgi::cuda_emulation::set_order(order, 5);
    samples::softmax_rows(nullptr, out, in, rows, columns);
    const std::vector<float> y = to_host(out, x.size());
    for (int row = 0; row < rows; ++row) {
      double sum = 0;
      for (int i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(x[row * columns + i]));
      for (int i = 0; i < columns; ++i) {
        REQUIRE(y[row * columns + i] == Approx(std::exp(x[row * columns + i]) / sum).epsilon(1e-5));
      }
    }
  }
  cudaFree(in);
  cudaFree(out);
}

TEMPLATE_TEST_CASE("matrix product by cp.async, ldmatrix and mma",
                   "",
                   tgi::cuda::bf16,
                   tgi::cuda::f16) {
  const int m = 128, n = 192, k = 160;
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<TestType> a(m * k), b(n * k);
  for (TestType& value : a) value = normal(random);
  for (TestType& value : b) value = normal(random);
  TestType* in_a = to_device(a);
  TestType* in_b = to_device(b);
  float* out = to_device(std::vector<float>(m * n));
  for (const Order order : {Order::kForward, Order::kBackward, Order::kShuffled}) {
    tgi::cuda_emulation::set_order(order, 7);
    samples::matmul(nullptr, out, in_a, in_b, m, n, k);
    const std::vector<float> c = to_host(out, m * n);
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        double sum = 0;
        for (int i = 0; i < k; ++i) {
          sum += static_cast<double>(a[row * k + i]) * static_cast<double>(b[column * k + i]);
        }
        REQUIRE(c[row * n + column] == Approx(sum).margin(1e-3));
      }
    }
  }
  cudaFree(in_a);
  cudaFree(in_b);
  cudaFree(out);
}
