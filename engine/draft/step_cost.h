// What one more row of a step costs, learnt from how long steps took: a line through rows and
// milliseconds, in which what is long ago counts less. Pure arithmetic.
#pragma once

#include <cstdint>

namespace tgi {

class StepCost {
 public:
  void observe(int32_t num_rows, double elapsed_ms);

  // What one more row costs, in units of what a token costs that a step of `num_rows` rows gives
  // when it gives `num_tokens`. 1: it must gain a whole token to pay.
  double row_price(double num_rows, double num_tokens) const;

  // The same of so many milliseconds beside the step.
  double price_of(double ms, double num_rows, double num_tokens) const;

  // Of a step of so many rows; 0: nothing is known yet.
  double step_ms(double num_rows) const;

 private:
  double ms_per_row() const;

  // Weighted by age.
  double weight_ = 0;
  double mean_rows_ = 0;
  double mean_ms_ = 0;
  double rows_rows_ = 0;  // sum of (rows - mean)^2
  double rows_ms_ = 0;    // sum of (rows - mean) * (ms - mean)
  // Of a row in a step's mean time for one: what is believed while steps are all of one size.
  double usual_share_ = 0.1;
};

}  // namespace tgi
