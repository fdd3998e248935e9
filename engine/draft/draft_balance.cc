#include "engine/draft/draft_balance.h"

#include <algorithm>

namespace tgi {
namespace {

constexpr int32_t kProbation = 16;   // steps that are looked at before they are judged
constexpr int32_t kMemory = 64;      // steps, after which they count for half
constexpr double kPatience = 100;    // times what was lost
constexpr double kMostOfWorth = 10;  // a step that took longer was disturbed

}  // namespace

void DraftBalance::observe(double spent_ms, double worth_ms) {
  if (is_off() || worth_ms <= 0) return;
  spent_ms_ += std::min(spent_ms, kMostOfWorth * worth_ms);
  worth_ms_ += worth_ms;
  ++num_steps_;
  if (num_steps_ >= kProbation && spent_ms_ > worth_ms_) {
    const double lost_ms = spent_ms_ - worth_ms_;
    *this = {};
    debt_ms_ = kPatience * lost_ms;
  } else if (num_steps_ >= kMemory) {
    num_steps_ /= 2;
    spent_ms_ /= 2;
    worth_ms_ /= 2;
  }
}

void DraftBalance::pass(double ms) {
  debt_ms_ = std::max(debt_ms_ - ms, 0.0);
}

}  // namespace tgi
