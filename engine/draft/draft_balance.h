// Whether drafts that take time pay as a whole: what steps with drafts took against what their
// tokens would have taken without. Where they lose, nothing is drafted until what was lost is a
// hundredth of the time that has gone by since. Pure arithmetic.
#pragma once

#include <cstdint>

namespace tgi {

class DraftBalance {
 public:
  // A step for which a drafter worked: from the end of the step before to its own, and what its
  // tokens would have taken.
  void observe(double spent_ms, double worth_ms);
  // Of any step, whether it drafted or not.
  void pass(double ms);
  // They have lost, and it is not made up for yet.
  bool is_off() const { return debt_ms_ > 0; }

 private:
  int32_t num_steps_ = 0;
  double spent_ms_ = 0;
  double worth_ms_ = 0;
  double debt_ms_ = 0;
};

}  // namespace tgi
