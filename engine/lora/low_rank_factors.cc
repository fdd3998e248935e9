#include "engine/lora/low_rank_factors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "engine/lora/row_products.h"
#include "engine/sample/philox.h"

namespace tgi {
namespace {

constexpr int kPowerIterations = 4;
constexpr int kMaxSweeps = 30;
constexpr size_t kLanes = 8;
// What a vector has to keep of its length to be more than rounding errors.
constexpr double kSmallestPart = 1e-6;

double dot(const float* x, const float* y, int64_t count) {
  std::array<double, kLanes> sums{};
  const int64_t whole = count / static_cast<int64_t>(kLanes) * static_cast<int64_t>(kLanes);
  for (int64_t i = 0; i < whole; i += static_cast<int64_t>(kLanes)) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto at = i + static_cast<int64_t>(lane);
      sums[lane] += static_cast<double>(x[at]) * static_cast<double>(y[at]);
    }
  }
  double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  for (int64_t i = whole; i < count; ++i) {
    total += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  return total;
}

// A few long vectors, one a row.
struct Rows {
  Rows(int64_t num_rows, int64_t length)
      : count(num_rows), size(length), values(static_cast<size_t>(num_rows * length)) {}
  float* row(int64_t index) { return values.data() + index * size; }

  int64_t count;
  int64_t size;
  std::vector<float> values;
};

Rows random_rows(int64_t count, int64_t size) {
  Rows out(count, size);
  for (size_t i = 0; i < out.values.size(); ++i) {
    const uint64_t block = i / 4;
    const auto words = philox4x32_10(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}, {0, 0});
    out.values[i] = static_cast<float>(static_cast<int32_t>(words[i % 4])) / 2147483648.0F;
  }
  return out;
}

// Gram and Schmidt, each vector twice. One that the others make up becomes 0.
void make_orthonormal(Rows& rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    float* const row = rows.row(i);
    const double length = std::sqrt(dot(row, row, rows.size));
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const float* const other = rows.row(j);
        const auto part = static_cast<float>(dot(row, other, rows.size));
        for (int64_t c = 0; c < rows.size; ++c) row[c] -= part * other[c];
      }
    }
    const double left = std::sqrt(dot(row, row, rows.size));
    const bool is_new = left > kSmallestPart * length;
    const double scale = is_new ? 1.0 / left : 0.0;
    for (int64_t c = 0; c < rows.size; ++c) {
      row[c] = static_cast<float>(static_cast<double>(row[c]) * scale);
    }
  }
}

// Of a symmetric matrix: its eigenvalues, and in the rows of `vectors` its eigenvectors.
class Jacobi {
 public:
  explicit Jacobi(std::vector<double> matrix, size_t size)
      : size_(size), a_(std::move(matrix)), vectors_(size * size, 0.0) {
    for (size_t i = 0; i < size_; ++i) vectors_[i * size_ + i] = 1.0;
    double total = 0;
    for (const double value : a_) total += value * value;
    for (int sweep = 0; sweep < kMaxSweeps && off_diagonal() > 1e-30 * total; ++sweep) {
      for (size_t p = 0; p + 1 < size_; ++p) {
        for (size_t q = p + 1; q < size_; ++q) rotate(p, q);
      }
    }
  }

  double value(size_t i) const { return a_[i * size_ + i]; }
  const double* vector(size_t i) const { return vectors_.data() + i * size_; }

 private:
  double off_diagonal() const {
    double sum = 0;
    for (size_t i = 0; i < size_; ++i) {
      for (size_t j = 0; j < size_; ++j) {
        if (i != j) sum += a_[i * size_ + j] * a_[i * size_ + j];
      }
    }
    return sum;
  }

  // Makes (p, q) 0.
  void rotate(size_t p, size_t q) {
    const double off = a_[p * size_ + q];
    if (off == 0.0) return;
    const double theta = (value(q) - value(p)) / (2.0 * off);
    const double sign = theta < 0 ? -1.0 : 1.0;
    const double t = sign / (std::abs(theta) + std::sqrt(theta * theta + 1.0));
    const double cosine = 1.0 / std::sqrt(t * t + 1.0);
    const double sine = t * cosine;
    turn(a_.data() + p * size_, a_.data() + q * size_, 1, cosine, sine);
    turn(a_.data() + p, a_.data() + q, size_, cosine, sine);
    turn(vectors_.data() + p * size_, vectors_.data() + q * size_, 1, cosine, sine);
  }

  void turn(double* x, double* y, size_t step, double cosine, double sine) const {
    for (size_t i = 0; i < size_ * step; i += step) {
      const double old = x[i];
      x[i] = cosine * old - sine * y[i];
      y[i] = sine * old + cosine * y[i];
    }
  }

  const size_t size_;
  std::vector<double> a_;
  std::vector<double> vectors_;
};

// The directions in which the small matrix (count, size) is largest, `rank` of them: (rank, count).
std::vector<float> main_directions(Rows& small, int64_t rank) {
  const auto count = static_cast<size_t>(small.count);
  std::vector<double> gram(count * count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const double value =
          dot(small.row(static_cast<int64_t>(i)), small.row(static_cast<int64_t>(j)), small.size);
      gram[i * count + j] = value;
      gram[j * count + i] = value;
    }
  }
  const Jacobi jacobi(std::move(gram), count);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return jacobi.value(i); });
  std::vector<float> out;
  for (int64_t i = 0; i < rank; ++i) {
    const double* const vector = jacobi.vector(order[static_cast<size_t>(i)]);
    for (size_t j = 0; j < count; ++j) out.push_back(static_cast<float>(vector[j]));
  }
  return out;
}

}  // namespace

LowRankFactors factorise(
    const std::vector<float>& matrix, int64_t rows, int64_t cols, int64_t rank, int num_threads) {
  TGI_CHECK(rank >= 1 && rank <= rows && rank <= cols);
  TGI_CHECK(static_cast<int64_t>(matrix.size()) == rows * cols);
  const int64_t count = std::min({rows, cols, rank + kSpareVectors});
  const MatrixView plain{.data = matrix.data(), .stride = cols};
  const MatrixView turned{.data = matrix.data(), .stride = cols, .is_transposed = true};
  Rows wide = random_rows(count, cols);
  Rows tall(count, rows);
  const auto to_tall = [&] {
    multiply_rows(num_threads, wide.values.data(), count, cols, turned, rows, tall.values.data());
    make_orthonormal(tall);
  };
  const auto to_wide = [&] {
    multiply_rows(num_threads, tall.values.data(), count, rows, plain, cols, wide.values.data());
  };
  to_tall();
  for (int i = 0; i < kPowerIterations; ++i) {
    to_wide();
    make_orthonormal(wide);
    to_tall();
  }
  to_wide();
  const std::vector<float> directions = main_directions(wide, rank);
  LowRankFactors out;
  out.a.resize(static_cast<size_t>(rank * cols));
  multiply_rows(num_threads, directions.data(), rank, count,
                {.data = wide.values.data(), .stride = cols}, cols, out.a.data());
  std::vector<float> b(static_cast<size_t>(rank * rows));
  multiply_rows(num_threads, directions.data(), rank, count,
                {.data = tall.values.data(), .stride = rows}, rows, b.data());
  out.b.resize(b.size());
  for (int64_t r = 0; r < rank; ++r) {
    for (int64_t i = 0; i < rows; ++i) {
      out.b[static_cast<size_t>(i * rank + r)] = b[static_cast<size_t>(r * rows + i)];
    }
  }
  return out;
}

}  // namespace tgi
