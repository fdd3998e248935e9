// Cost: 2 * rank * (elements of W) flops, at 10 to 30 GFLOP/s a thread without AVX. Rows are
// decoded a block at a time, and columns of a block changed a piece at a time, so that they stay in
// the cache for all ranks.
#include "engine/lora/row_lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/model/weight_check.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

constexpr int64_t kBlockRows = 32;
constexpr int64_t kPieceCols = 1024;
constexpr int64_t kRanksAtOnce = 4;
constexpr size_t kLanes = 8;

int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// Two rows of the weight, and four of A with what each of the two takes of it.
struct RowPair {
  float* first = nullptr;
  float* second = nullptr;
};

void add_four_ranks(const std::array<const float*, kRanksAtOnce>& a,
                    const float* first_factors,
                    const float* second_factors,
                    RowPair rows,
                    int64_t count) {
  const float* __restrict a0 = a[0];
  const float* __restrict a1 = a[1];
  const float* __restrict a2 = a[2];
  const float* __restrict a3 = a[3];
  float* __restrict first = rows.first;
  float* __restrict second = rows.second;
  const float f0 = first_factors[0];
  const float f1 = first_factors[1];
  const float f2 = first_factors[2];
  const float f3 = first_factors[3];
  const float s0 = second_factors[0];
  const float s1 = second_factors[1];
  const float s2 = second_factors[2];
  const float s3 = second_factors[3];
  for (int64_t i = 0; i < count; ++i) {
    first[i] += (f0 * a0[i] + f1 * a1[i]) + (f2 * a2[i] + f3 * a3[i]);
    second[i] += (s0 * a0[i] + s1 * a1[i]) + (s2 * a2[i] + s3 * a3[i]);
  }
}

double sum_of_squares(const float* values, int64_t count) {
  std::array<double, kLanes> sums{};
  const int64_t whole = count / static_cast<int64_t>(kLanes) * static_cast<int64_t>(kLanes);
  for (int64_t i = 0; i < whole; i += static_cast<int64_t>(kLanes)) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + static_cast<int64_t>(lane)]);
      sums[lane] += value * value;
    }
  }
  double total = 0.0;
  for (const double sum : sums) total += sum;
  for (int64_t i = whole; i < count; ++i) {
    total += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return total;
}

// (rows, cols), in the order in which the stored numbers follow each other.
void decode(const WeightPart& part, std::vector<float>& out) {
  const auto size = static_cast<int64_t>(dtype_size(part.dtype));
  if (part.col_stride == 1) {
    for (int64_t row = 0; row < part.rows; ++row) {
      read_elements(part.data + row * part.row_stride * size, part.dtype,
                    std::span(out).subspan(static_cast<size_t>(row * part.cols),
                                           static_cast<size_t>(part.cols)));
    }
    return;
  }
  for (int64_t col = 0; col < part.cols; ++col) {
    for (int64_t row = 0; row < part.rows; ++row) {
      out[static_cast<size_t>(row * part.cols + col)] = weight_element(part, row, col);
    }
  }
}

class RowLengths {
 public:
  RowLengths(const LoadedConfig& model,
             const Checkpoint& base,
             const Checkpoint& adapter,
             const LowRankProduct& product,
             const ModuleTarget& target)
      : model_(model),
        base_(base),
        rank_(product.b->shape[1]),
        padded_rank_(round_up(rank_, kRanksAtOnce)),
        cols_(target.inputs),
        a_(read_elements(adapter.bytes(*product.a), *product.a->dtype)),
        factors_(static_cast<size_t>(target.outputs * padded_rank_), 0.0F),
        lengths_(static_cast<size_t>(target.outputs), 0.0F) {
    a_.resize(static_cast<size_t>(padded_rank_ * cols_), 0.0F);
    const std::vector<float> b = read_elements(adapter.bytes(*product.b), *product.b->dtype);
    for (int64_t row = 0; row < target.outputs; ++row) {
      for (int64_t r = 0; r < rank_; ++r) {
        factors_[static_cast<size_t>(row * padded_rank_ + r)] =
            product.scale * b[static_cast<size_t>(row * rank_ + r)];
      }
    }
  }

  // Of rows of a tensor of the table.
  void add(const TensorEntry& entry, Range taken) {
    const MatrixSpec spec = matrix_spec(model_, entry);
    WeightProblems problems;
    const auto tensors = model_.weight_format->collect(model_.json, base_, spec, problems);
    if (!problems.empty()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: the base model's folder does not hold it as this model has it",
                              entry.name));
    }
    const int64_t num_blocks = (taken.count + kBlockRows - 1) / kBlockRows;
    const auto num_threads = static_cast<int>(std::thread::hardware_concurrency() / 2);
    parallel_for(std::max(1, num_threads), num_blocks, [&](int64_t block) {
      const int64_t begin = block * kBlockRows;
      const Range rows{.begin = begin, .count = std::min(kBlockRows, taken.count - begin)};
      const HostWeight weight = model_.weight_format->slice(
          model_.json, base_, spec, tensors, {.begin = taken.begin + begin, .count = rows.count},
          {.begin = 0, .count = cols_}, MatrixStorage(DType::kF32));
      add_block(weight, rows, entry.spec->turns);
    });
    for (const StoredTensor* tensor : tensors) base_.release(*tensor);
  }

  std::vector<float> take() { return std::move(lengths_); }

 private:
  void add_block(const HostWeight& weight, Range rows, Turns turns) {
    const WeightPart& part = weight.parts.front();
    if (part.random) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: random numbers, whose lengths are not known", weight.name));
    }
    // One row more, for the last of an odd number.
    std::vector<float> values(static_cast<size_t>((rows.count + 1) * cols_), 0.0F);
    decode(part, values);
    const auto module_row = [&](int64_t i) {
      return (rows.begin + std::min(i, rows.count - 1)) * turns.count + turns.index;
    };
    for (int64_t col = 0; col < cols_; col += kPieceCols) {
      const int64_t count = std::min(kPieceCols, cols_ - col);
      for (int64_t i = 0; i < rows.count; i += 2) {
        const RowPair pair{.first = values.data() + i * cols_ + col,
                           .second = values.data() + (i + 1) * cols_ + col};
        for (int64_t r = 0; r < padded_rank_; r += kRanksAtOnce) {
          const float* const a = a_.data() + r * cols_ + col;
          add_four_ranks({a, a + cols_, a + 2 * cols_, a + 3 * cols_},
                         factors_.data() + module_row(i) * padded_rank_ + r,
                         factors_.data() + module_row(i + 1) * padded_rank_ + r, pair, count);
        }
      }
    }
    for (int64_t i = 0; i < rows.count; ++i) {
      const double squares = sum_of_squares(values.data() + i * cols_, cols_);
      lengths_[static_cast<size_t>(module_row(i))] = static_cast<float>(std::sqrt(squares));
    }
  }

  const LoadedConfig& model_;
  const Checkpoint& base_;
  const int64_t rank_;
  const int64_t padded_rank_;
  const int64_t cols_;
  std::vector<float> a_;        // (padded_rank_, cols_)
  std::vector<float> factors_;  // (outputs, padded_rank_): scale * B
  std::vector<float> lengths_;  // (outputs)
};

}  // namespace

std::vector<float> changed_row_lengths(const LoadedConfig& model,
                                       const TensorTable& table,
                                       const Checkpoint& base,
                                       const ModuleTarget& target,
                                       const Checkpoint& adapter,
                                       const LowRankProduct& product) {
  RowLengths lengths(model, base, adapter, product, target);
  for (const SitePart& part : target.parts) {
    const TensorEntry* entry = table.find(part.role, part.layer, part.index());
    // A tied head.
    if (entry == nullptr) entry = table.find(Role::kTokenEmbedding);
    TGI_CHECK(entry != nullptr && entry->cols == target.inputs);
    lengths.add(*entry, part.rows_of(*entry));
  }
  return lengths.take();
}

}  // namespace tgi
