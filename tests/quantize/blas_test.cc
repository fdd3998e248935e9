#include "engine/quantize/blas.h"

#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/quantize/random_matrix.h"

namespace tgi {
namespace {

constexpr int64_t kSize = 128;
constexpr int64_t kTokens = 64;

// The inverse of the Cholesky factor of x^T x + 30, as GPTQ makes it; empty: none was found.
std::vector<float> inverse_factor(const std::vector<float>& x) {
  std::vector<float> a(kSize * kSize);
  multiply(true, kSize, kSize, kTokens, 1.0F, x.data(), kSize, x.data(), kSize, 0.0F, a.data(),
           kSize);
  for (int64_t i = 0; i < kSize; ++i) a[static_cast<size_t>(i * kSize + i)] += 30.0F;
  if (!invert_cholesky_factor(kSize, a.data())) a.clear();
  return a;
}

}  // namespace

TEST_CASE("products and factors are the same whatever else is computed at once") {
  const std::vector<float> x = random_matrix(kTokens, kSize, 1).values;
  const std::vector<float> alone = inverse_factor(x);
  REQUIRE_FALSE(alone.empty());
  constexpr size_t kThreads = 4;
  // Without a lock several of so many go wrong.
  constexpr int kRounds = 4'000;
  std::vector<int> num_wrong(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < kRounds; ++round) num_wrong[i] += inverse_factor(x) != alone;
      });
    }
  }
  CHECK(num_wrong == std::vector<int>(kThreads, 0));
}

}  // namespace tgi
