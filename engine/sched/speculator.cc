#include "engine/sched/speculator.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace tgi {
namespace {

constexpr double kKept = 0.9;         // of what was known of a sequence, with each verified step
constexpr double kKeptOfAll = 0.995;  // ... of all sequences
constexpr double kFirstAcceptance = 0.6;
constexpr double kDoubt = 2;           // drafts: from fewer than that little is learnt
constexpr double kMargin = 1.3;        // by which a draft must be worth more than its row
constexpr double kTooDear = 0.7;       // a row at this price is not worth a try
constexpr int32_t kTryEvery = 64;      // steps, where drafts are not worth their rows
constexpr double kWorthWaiting = 0.3;  // acceptance: for less no step is missed
constexpr int32_t kLongestRest = 63;   // steps, after which a token is waited for again
constexpr double kTryShare = 0.01;     // of the time goes to tries at most, where they take any
constexpr double kKeptOfTime = 0.9;    // of what was known of the drafter's time, with each look

}  // namespace

int32_t Speculator::most_drafts(const Sequence& sequence) {
  // A token follows the last draft, and none may follow the last token.
  const int32_t left = sequence.request->max_new_tokens - sequence.num_generated_tokens() -
                       sequence.num_pending_tokens;
  return std::min(sequence.speculation.max_drafts, left - 1);
}

// How likely a draft is drawn when those before it were.
double Speculator::acceptance(const Sequence& sequence) const {
  const double of_all = (num_right_ + kDoubt * kFirstAcceptance) / (num_tried_ + kDoubt);
  const Speculation& own = sequence.speculation;
  return (own.num_right + kDoubt * of_all) / (own.num_tried + kDoubt);
}

// Of one more draft, as StepCost::row_price: its row, and the time it takes to be made.
double Speculator::price(double rows, double tokens) const {
  return cost_.row_price(rows, tokens) + cost_.price_of(ms_per_draft_, rows, tokens);
}

// `rows` and `tokens`: of the step so far, to which these drafts and what they are likely to give
// are added.
int32_t Speculator::num_worthwhile(const Sequence& sequence,
                                   int32_t most,
                                   double& rows,
                                   double& tokens) const {
  if (options_.at_any_price) return most;
  const double p = acceptance(sequence);
  double gain = p;
  int32_t count = 0;
  while (count < most && gain > kMargin * price(rows, tokens)) {
    ++count;
    rows += 1;
    tokens += gain;
    gain *= p;
  }
  return count;
}

// Once in a while it is tried all the same: what follows may be another text.
bool Speculator::is_due(Sequence& sequence, double rows, double tokens) const {
  if (cost_.row_price(rows, tokens) > kTooDear || --sequence.speculation.steps_to_try > 0)
    return false;
  if (ms_of_last_look_ > kTryShare * ms_since_look_) return false;
  sequence.speculation.steps_to_try = kTryEvery;
  return true;
}

bool Speculator::waits_for_token(Sequence& sequence) {
  Speculation& own = sequence.speculation;
  if (most_drafts(sequence) <= 0 || is_off()) return false;
  if (acceptance(sequence) < kWorthWaiting && !options_.at_any_price) return false;
  if (own.steps_of_rest > 0) {
    --own.steps_of_rest;
    return false;
  }
  double rows = last_num_rows_;
  double tokens = last_num_rows_;
  if (num_worthwhile(sequence, 1, rows, tokens) == 0) return false;
  // What reads more than the text, or takes its time, is asked once the token is known.
  if (!drafter_->is_free()) {
    own.has_waited = true;
    return true;
  }
  // The first of two guesses is what it waits for.
  Sequence* const one[] = {&sequence};
  const int32_t count[] = {2};
  look(one, count);
  own.has_waited = sequence.draft_ids.size() == 2;
  sequence.draft_ids.clear();
  return own.has_waited;
}

Drafter::Memory& Speculator::memory_of(Sequence& sequence) {
  if (sequence.speculation.memory == nullptr) sequence.speculation.memory = drafter_->start();
  return *sequence.speculation.memory;
}

void Speculator::add_computed(Sequence& sequence,
                              int32_t first_token,
                              std::span<const float> rows) {
  computed_.push_back({.memory = &memory_of(sequence),
                       .token_ids = sequence.token_ids,
                       .first_token = first_token,
                       .rows = rows,
                       .sampling = &sequence.sampling});
}

void Speculator::read_computed() {
  if (!computed_.empty()) drafter_->read(computed_);
  computed_.clear();
}

void Speculator::look(std::span<Sequence* const> sequences, std::span<const int32_t> num_wanted) {
  wanted_.clear();
  for (size_t i = 0; i < sequences.size(); ++i) {
    Sequence& sequence = *sequences[i];
    wanted_.push_back({.memory = &memory_of(sequence),
                       .token_ids = sequence.token_ids,
                       .max_tokens = num_wanted[i],
                       .draft_ids = &sequence.draft_ids,
                       .hidden = sequence.speculation.hidden,
                       .sampling = &sequence.sampling});
  }
  const auto began = std::chrono::steady_clock::now();
  drafter_->draft(wanted_);
  if (drafter_->is_free()) return;
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  has_looked_ = true;
  ms_of_last_look_ = took.count();
  ms_since_look_ = 0;
  int32_t num_drafts = 0;
  for (const Sequence* const sequence : sequences) {
    num_drafts += static_cast<int32_t>(sequence->draft_ids.size());
  }
  // Without any it was reading, as it does once for a text.
  if (num_drafts == 0) return;
  const double each = took.count() / num_drafts;
  ms_per_draft_ =
      ms_per_draft_ <= 0 ? each : kKeptOfTime * ms_per_draft_ + (1 - kKeptOfTime) * each;
}

void Speculator::draft(std::span<Sequence* const> sequences, int32_t max_drafts) {
  drafting_.clear();
  num_wanted_.clear();
  auto rows = static_cast<double>(sequences.size());
  double tokens = rows;
  last_num_rows_ = rows;
  if (is_off()) return;
  for (Sequence* const sequence : sequences) {
    const int32_t most = std::min(most_drafts(*sequence), max_drafts);
    if (most <= 0 || sequence->num_pending_tokens > 0 || sequence->drafts_are_forced) continue;
    int32_t count = num_worthwhile(*sequence, most, rows, tokens);
    if (count == 0) {
      if (!is_due(*sequence, rows, tokens)) continue;
      count = 1;
      rows += 1;
    }
    max_drafts -= count;
    drafting_.push_back(sequence);
    num_wanted_.push_back(count);
  }
  if (drafting_.empty()) return;
  look(drafting_, num_wanted_);
  for (Sequence* const sequence : drafting_) {
    const bool was_drafted = !sequence->draft_ids.empty();
    cut(*sequence);
    if (!sequence->draft_ids.empty()) continue;
    if (was_drafted && !drafter_->is_free()) learn(*sequence, 1, 0);
    rest(sequence->speculation);
  }
}

// It has waited for nothing.
void Speculator::rest(Speculation& own) {
  if (!std::exchange(own.has_waited, false)) return;
  own.rest = std::min(2 * own.rest + 1, kLongestRest);
  own.steps_of_rest = own.rest;
}

// A draft is there for the row behind it. Where none will be wanted, as at an end, it is left out
// with all that follow, as is what the answer's grammar does not allow.
void Speculator::cut(Sequence& sequence) const {
  std::vector<int32_t>& drafts = sequence.draft_ids;
  TokenGuide* const guide = sequence.guide.get();
  const bool heeds_eos = !sequence.request->ignore_eos || guide != nullptr;
  const auto goes_on = [&](int32_t id) {
    if (heeds_eos && std::ranges::find(options_.eos_token_ids, id) != options_.eos_token_ids.end())
      return false;
    if (guide == nullptr) return true;
    try {
      return guide->try_accept(id) && !guide->is_over();
    } catch (const std::exception&) {
      return false;  // too much for the grammar: should it be drawn, the answer meets that itself
    }
  };
  drafts.erase(std::ranges::find_if_not(drafts, goes_on), drafts.end());
  if (guide != nullptr) guide->rollback();
}

void Speculator::learn(Sequence& sequence, double num_tried, double num_right) {
  Speculation& own = sequence.speculation;
  own.num_tried = kKept * own.num_tried + num_tried;
  own.num_right = kKept * own.num_right + num_right;
  num_tried_ = kKeptOfAll * num_tried_ + num_tried;
  num_right_ = kKeptOfAll * num_right_ + num_right;
}

void Speculator::observe_step(const StepTime& step) {
  cost_.observe(step.num_rows, step.elapsed_ms);
  ms_since_look_ += step.elapsed_ms;
  balance_.pass(step.elapsed_ms);
  if (!step.was_drafted || step.interval_ms <= 0 || step.num_sequences == 0) return;
  const double each = cost_.step_ms(step.num_sequences) / step.num_sequences;
  balance_.observe(step.interval_ms, each * step.num_tokens);
}

void Speculator::verified(Sequence& sequence, int32_t num_drafts, int32_t num_accepted) {
  counts_.num_drafted += num_drafts;
  counts_.num_accepted += num_accepted;
  // The first that was not drawn was tried; of those behind it nothing is known.
  learn(sequence, std::min(num_accepted + 1, num_drafts), num_accepted);
  Speculation& own = sequence.speculation;
  if (num_accepted == num_drafts) own.steps_to_try = 1;
  if (num_accepted == 0) return rest(own);
  own.has_waited = false;
  own.rest = 0;
}

}  // namespace tgi
