// Factors of matrices: exact where the rank allows it, near the best where not, and the same bits
// whatever the number of threads.
#include "engine/lora/low_rank_factors.h"

#include <algorithm>
#include <cmath>

#include "engine/lora/row_products.h"
#include "engine/sample/philox.h"
#include "tests/catch.h"

namespace tgi {
namespace {

float number(uint32_t index, uint32_t seed) {
  return static_cast<float>(static_cast<int32_t>(philox4x32_10({index, 0, 0, 0}, {seed, 1})[0])) /
         2147483648.0F;
}

std::vector<float> random_matrix(int64_t count, uint32_t seed) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(number(static_cast<uint32_t>(i), seed));
  return out;
}

std::vector<double> product(const std::vector<float>& x,
                            const std::vector<float>& y,
                            int64_t rows,
                            int64_t inner,
                            int64_t cols) {
  std::vector<double> out(static_cast<size_t>(rows * cols), 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < inner; ++k) {
      for (int64_t j = 0; j < cols; ++j) {
        out[static_cast<size_t>(i * cols + j)] +=
            static_cast<double>(x[static_cast<size_t>(i * inner + k)]) *
            static_cast<double>(y[static_cast<size_t>(k * cols + j)]);
      }
    }
  }
  return out;
}

// Of what is left, the length, as a part of the matrix's.
double distance(const std::vector<float>& matrix,
                const LowRankFactors& factors,
                int64_t rows,
                int64_t cols,
                int64_t rank) {
  const auto near = product(factors.b, factors.a, rows, rank, cols);
  double left = 0;
  double all = 0;
  for (size_t i = 0; i < matrix.size(); ++i) {
    left += (matrix[i] - near[i]) * (matrix[i] - near[i]);
    all += static_cast<double>(matrix[i]) * static_cast<double>(matrix[i]);
  }
  return std::sqrt(left / all);
}

TEST_CASE("products with few rows are those of plain loops, from either side") {
  for (const auto& [count, inner, cols] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 70, 65}, {2, 1100, 5}, {7, 33, 200}}) {
    const auto x = random_matrix(count * inner, 1);
    const auto matrix = random_matrix(inner * cols, 2);
    std::vector<float> turned(matrix.size());
    for (int64_t r = 0; r < inner; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        turned[static_cast<size_t>(c * inner + r)] = matrix[static_cast<size_t>(r * cols + c)];
      }
    }
    const auto expected = product(x, matrix, count, inner, cols);
    std::vector<float> out(static_cast<size_t>(count * cols));
    multiply_rows(1, x.data(), count, inner, {.data = matrix.data(), .stride = cols}, cols,
                  out.data());
    for (size_t i = 0; i < out.size(); ++i) CHECK(out[i] == Approx(expected[i]).margin(1e-4));
    std::vector<float> again(out.size());
    multiply_rows(3, x.data(), count, inner,
                  {.data = turned.data(), .stride = inner, .is_transposed = true}, cols,
                  again.data());
    CHECK(again == out);
  }
}

TEST_CASE("a matrix of the rank that is asked for is its factors' product") {
  for (const auto& [rows, cols] : {std::array<int64_t, 2>{90, 130}, {130, 90}, {7, 200}, {5, 5}}) {
    const int64_t rank = 5;
    const auto b = random_matrix(rows * rank, 3);
    const auto a = random_matrix(rank * cols, 4);
    const auto exact = product(b, a, rows, rank, cols);
    const std::vector<float> matrix(exact.begin(), exact.end());
    CHECK(distance(matrix, factorise(matrix, rows, cols, rank, 1), rows, cols, rank) < 1e-6);
    // More than there is adds nothing.
    if (rows > 7) {
      CHECK(distance(matrix, factorise(matrix, rows, cols, 9, 1), rows, cols, 9) < 1e-6);
    }
  }
}

// The values on the diagonal, hidden by a reflection on each side.
std::vector<float> with_singular_values(const std::vector<double>& values) {
  const size_t size = values.size();
  const auto u = random_matrix(static_cast<int64_t>(size), 5);
  const auto v = random_matrix(static_cast<int64_t>(size), 6);
  const auto length2 = [](const std::vector<float>& x) {
    double sum = 0;
    for (const float one : x) sum += static_cast<double>(one) * static_cast<double>(one);
    return sum;
  };
  const double u2 = length2(u);
  const double v2 = length2(v);
  const auto reflected = [](const std::vector<float>& x, double x2, size_t i, size_t j) {
    return (i == j ? 1.0 : 0.0) - 2.0 * static_cast<double>(x[i]) * static_cast<double>(x[j]) / x2;
  };
  std::vector<double> out(size * size);
  for (size_t k = 0; k < size; ++k) {
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        out[i * size + j] += values[k] * reflected(u, u2, i, k) * reflected(v, v2, k, j);
      }
    }
  }
  return {out.begin(), out.end()};
}

TEST_CASE("of a matrix with known singular values the largest are kept") {
  std::vector<double> values;
  double left = 0;
  double all = 0;
  for (int k = 0; k < 40; ++k) {
    values.push_back(10.0 / (k + 1));
    all += values.back() * values.back();
    if (k >= 6) left += values.back() * values.back();
  }
  const std::vector<float> matrix = with_singular_values(values);
  const LowRankFactors factors = factorise(matrix, 40, 40, 6, 2);
  CHECK(distance(matrix, factors, 40, 40, 6) == Approx(std::sqrt(left / all)).epsilon(1e-4));
}

TEST_CASE("where singular values fall slowly the factors are the nearest ones to 1e-4") {
  std::vector<double> values;
  for (int k = 0; k < 64; ++k) values.push_back(4.0 * std::pow(0.96, k));
  const std::vector<float> matrix = with_singular_values(values);
  std::fill(values.begin() + 16, values.end(), 0.0);
  const std::vector<float> nearest = with_singular_values(values);
  const LowRankFactors factors = factorise(matrix, 64, 64, 16, 1);
  CHECK(distance(nearest, factors, 64, 64, 16) < 1e-4);
}

TEST_CASE("of a large random matrix the factors are within a percent of the nearest ones") {
  const int64_t rows = 150;
  const int64_t cols = 190;
  const int64_t rank = 20;
  const auto matrix = random_matrix(rows * cols, 7);
  const double found = distance(matrix, factorise(matrix, rows, cols, rank, 2), rows, cols, rank);
  // With as many vectors as there are rows, the first ones are the nearest of all.
  const int64_t most = rows - 1;
  const LowRankFactors all = factorise(matrix, rows, cols, most, 2);
  CHECK(distance(matrix, all, rows, cols, most) < 0.01);
  LowRankFactors best{.a = {all.a.begin(), all.a.begin() + rank * cols}, .b = {}};
  for (int64_t i = 0; i < rows; ++i) {
    best.b.insert(best.b.end(), all.b.begin() + i * most, all.b.begin() + i * most + rank);
  }
  const double least = distance(matrix, best, rows, cols, rank);
  CHECK(found >= least);
  CHECK(found < 1.01 * least);
}

TEST_CASE("factors have the same bits for any number of threads, and nothing has no factors") {
  const auto matrix = random_matrix(200 * 130, 8);
  const LowRankFactors one = factorise(matrix, 200, 130, 12, 1);
  const LowRankFactors three = factorise(matrix, 200, 130, 12, 3);
  CHECK(one.a == three.a);
  CHECK(one.b == three.b);
  const LowRankFactors none = factorise(std::vector<float>(200 * 130, 0.0F), 200, 130, 4, 1);
  CHECK(none.a == std::vector<float>(4 * 130, 0.0F));
  for (const float value : none.b) CHECK(std::isfinite(value));
}

}  // namespace
}  // namespace tgi
