#include "engine/quantize/gptq.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/quantize/blas.h"

namespace tgi {
namespace {

constexpr int64_t kBlockCols = 128;  // after which the columns to the right are brought up to date
constexpr int64_t kGptqRowsPerTask = 32;
constexpr int kMaxAttempts = 4;

}  // namespace

GptqSolver::GptqSolver(GramMatrix gram, const GptqOptions& options)
    : options_(options), size_(gram.size()), order_(static_cast<size_t>(gram.size())) {
  const auto diagonal = [&](int64_t i) {
    return gram.values()[static_cast<size_t>(i * size_ + i)];
  };
  std::iota(order_.begin(), order_.end(), int64_t{0});
  if (options_.act_order) {
    std::ranges::stable_sort(order_, std::greater<>(), diagonal);
  }
  for (const int64_t column : order_) {
    importance_.push_back(diagonal(column));
    is_dead_.push_back(!(diagonal(column) > 0.0F));
  }
  factorize(gram);
}

// With R upper and H = R R^T, U is the inverse of R. R comes from the Cholesky factor of H with its
// order reversed: reversing a whole row-major square turns it by half a turn.
void GptqSolver::factorize(GramMatrix& gram) {
  gram.symmetrize();
  if (options_.act_order) {
    factor_.resize(gram.values().size());
    for (int64_t i = 0; i < size_; ++i) {
      const int64_t from = order_[static_cast<size_t>(i)] * size_;
      for (int64_t j = 0; j < size_; ++j) {
        factor_[static_cast<size_t>(i * size_ + j)] =
            gram.values()[static_cast<size_t>(from + order_[static_cast<size_t>(j)])];
      }
    }
    gram = GramMatrix(0);
  } else {
    factor_ = std::move(gram.values());
  }
  std::ranges::reverse(factor_);

  const double total = std::accumulate(importance_.begin(), importance_.end(), 0.0);
  const double mean = total > 0.0 ? total / static_cast<double>(size_) : 1.0;
  double damping = static_cast<double>(options_.damping);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt, damping *= 10.0) {
    for (int64_t i = 0; i < size_; ++i) {
      const auto place = static_cast<size_t>(size_ - 1 - i);
      const double energy = is_dead_[place] ? mean : double{importance_[place]};
      factor_[static_cast<size_t>(i * size_ + i)] = static_cast<float>(energy + damping * mean);
    }
    if (invert_cholesky_factor(size_, factor_.data())) {
      std::ranges::reverse(factor_);
      return;
    }
    // The upper triangle is as it was.
    for (int64_t row = 0; row < size_; ++row) {
      for (int64_t col = 0; col < row; ++col) {
        factor_[static_cast<size_t>(row * size_ + col)] =
            factor_[static_cast<size_t>(col * size_ + row)];
      }
    }
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("the second moments of {} inputs are not positive definite, with damping "
                          "up to {}; use a longer calibration text or more damping",
                          size_, damping / 10.0));
}

GroupScale GptqSolver::scale_of(const GroupedMatrix& out, int64_t row, int64_t group) const {
  const auto at = static_cast<size_t>(row * out.num_groups() + group);
  return {.scale = out.scales[at], .zero = out.zeros.empty() ? int8_t{0} : out.zeros[at]};
}

void GptqSolver::set_scale(GroupedMatrix& out,
                           int64_t row,
                           int64_t group,
                           const GroupScale& scale) const {
  const auto at = static_cast<size_t>(row * out.num_groups() + group);
  out.scales[at] = scale.scale;
  if (!out.zeros.empty()) out.zeros[at] = scale.zero;
}

GroupedMatrix GptqSolver::quantize(FloatMatrix& w) const {
  TGI_CHECK(w.cols == size_);
  GroupedMatrix out = make_grouped(w.rows, w.cols, options_.codes);
  parallel_for(options_.num_threads, (w.rows + kGptqRowsPerTask - 1) / kGptqRowsPerTask,
               [&](int64_t task) {
                 const int64_t begin = task * kGptqRowsPerTask;
                 quantize_rows(w, begin, std::min(w.rows, begin + kGptqRowsPerTask), out);
               });
  return out;
}

// Rows don't know of each other.
void GptqSolver::quantize_rows(FloatMatrix& w,
                               int64_t begin,
                               int64_t end,
                               GroupedMatrix& out) const {
  const CodeOptions& codes = options_.codes;
  const auto group_size = static_cast<size_t>(codes.group_size);
  const std::span<const float> importance = importance_;
  std::vector<float> errors(static_cast<size_t>((end - begin) * kBlockCols));
  std::vector<float> ordered(static_cast<size_t>(size_));

  for (int64_t row = begin; row < end; ++row) {
    const std::span<float> x = w.row(row);
    if (options_.act_order) {
      std::vector<float> by_column(static_cast<size_t>(size_));
      for (size_t i = 0; i < by_column.size(); ++i) {
        by_column[static_cast<size_t>(order_[i])] = importance_[i];
      }
      for (int64_t group = 0; group < out.num_groups(); ++group) {
        const size_t first = static_cast<size_t>(group) * group_size;
        set_scale(
            out, row, group,
            choose_scale(x.subspan(first, group_size),
                         std::span<const float>(by_column).subspan(first, group_size), codes));
      }
      for (size_t i = 0; i < ordered.size(); ++i) ordered[i] = x[static_cast<size_t>(order_[i])];
      std::ranges::copy(ordered, x.begin());
    }
    for (size_t i = 0; i < is_dead_.size(); ++i) {
      if (is_dead_[i]) x[i] = 0.0F;
    }
  }

  for (int64_t block = 0; block < size_; block += kBlockCols) {
    const int64_t block_end = std::min(size_, block + kBlockCols);
    for (int64_t i = block; i < block_end; ++i) {
      const float* factor = factor_.data() + i * size_;
      const int64_t column = order_[static_cast<size_t>(i)];
      const int64_t group = column / codes.group_size;
      const bool begins_group = !options_.act_order && column % codes.group_size == 0;
      for (int64_t row = begin; row < end; ++row) {
        const std::span<float> x = w.row(row);
        const auto at = static_cast<size_t>(i);
        if (begins_group) {
          set_scale(
              out, row, group,
              choose_scale(x.subspan(at, group_size), importance.subspan(at, group_size), codes));
        }
        const GroupScale scale = scale_of(out, row, group);
        const int8_t code = code_of(x[at], scale, codes.bits);
        out.codes[static_cast<size_t>(row * size_ + column)] = code;
        const float error = (x[at] - value_of(code, scale)) / factor[i];
        for (int64_t j = i + 1; j < block_end; ++j) x[static_cast<size_t>(j)] -= error * factor[j];
        errors[static_cast<size_t>((row - begin) * kBlockCols + i - block)] = error;
      }
    }
    if (block_end == size_) break;
    multiply(false, end - begin, size_ - block_end, block_end - block, -1.0F, errors.data(),
             kBlockCols, factor_.data() + block * size_ + block_end, size_, 1.0F,
             w.values.data() + begin * size_ + block_end, size_);
  }
}

}  // namespace tgi
