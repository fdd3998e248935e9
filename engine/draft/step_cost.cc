#include "engine/draft/step_cost.h"

#include <algorithm>

namespace tgi {
namespace {

constexpr double kKept = 0.97;       // of what was known, with each step
constexpr double kDoubt = 1.0;       // rows^2: from less variation than that little is learnt
constexpr double kFirstShare = 0.1;  // a device that waits for its memory
constexpr double kForgetting = 0.999;
constexpr double kOutlier = 4.0;  // a step that took so many times what was expected was disturbed

}  // namespace

double StepCost::ms_per_row() const {
  if (mean_rows_ <= 0) return 0;
  const double mean = mean_ms_ / mean_rows_;
  const double slope = (rows_ms_ + kDoubt * usual_share_ * mean) / (rows_rows_ + kDoubt);
  return std::clamp(slope, 0.0, mean);
}

void StepCost::observe(int32_t num_rows, double elapsed_ms) {
  const double rows = num_rows;
  if (weight_ > 4) {
    const double expected = mean_ms_ + ms_per_row() * (rows - mean_rows_);
    if (expected > 0) elapsed_ms = std::min(elapsed_ms, kOutlier * expected);
  }
  weight_ = kKept * weight_ + 1;
  const double rows_off = rows - mean_rows_;
  const double ms_off = elapsed_ms - mean_ms_;
  mean_rows_ += rows_off / weight_;
  mean_ms_ += ms_off / weight_;
  rows_rows_ = kKept * rows_rows_ + rows_off * (rows - mean_rows_);
  rows_ms_ = kKept * rows_ms_ + rows_off * (elapsed_ms - mean_ms_);
  if (rows_rows_ > 4 * kDoubt && mean_ms_ > 0) {
    usual_share_ = ms_per_row() * mean_rows_ / mean_ms_;
  } else {
    // It may have become cheaper. To learn that takes a try.
    usual_share_ = std::max(usual_share_ * kForgetting, std::min(usual_share_, kFirstShare));
  }
}

double StepCost::step_ms(double num_rows) const {
  return mean_ms_ + ms_per_row() * (num_rows - mean_rows_);
}

double StepCost::row_price(double num_rows, double num_tokens) const {
  if (mean_rows_ <= 0 || step_ms(num_rows) <= 0) return kFirstShare;
  return price_of(ms_per_row(), num_rows, num_tokens);
}

double StepCost::price_of(double ms, double num_rows, double num_tokens) const {
  const double whole = step_ms(num_rows);
  return mean_rows_ <= 0 || whole <= 0 ? 0 : ms * num_tokens / whole;
}

}  // namespace tgi
