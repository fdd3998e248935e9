// Decides for each sequence of a step how many drafts it takes along to be verified, from how many
// of its drafts were right so far and from what a row costs; gets them from a Drafter and cuts off
// what can't be drawn. Never changes an answer. Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft/draft_balance.h"
#include "engine/draft/drafter.h"
#include "engine/draft/step_cost.h"
#include "engine/sched/sequence.h"

namespace tgi {

struct SpeculatorOptions {
  std::vector<int32_t> eos_token_ids{};
  bool at_any_price = false;  // as many as a sequence wants, whatever they gain
};

class Speculator {
 public:
  struct Counts {
    int64_t num_drafted = 0;
    int64_t num_accepted = 0;
  };

  Speculator(std::unique_ptr<Drafter> drafter, SpeculatorOptions options)
      : options_(std::move(options)), drafter_(std::move(drafter)) {}

  // The sequence's last token is not known yet, and it is worth more to wait for it and to draft
  // what follows than to be in the next step already.
  bool waits_for_token(Sequence& sequence);

  // Fills draft_ids of those that a step gives one token each, all of them known and nothing
  // forced behind them; at most `max_drafts` together.
  void draft(std::span<Sequence* const> sequences, int32_t max_drafts);

  // Whether steps are to report what the sequence's tokens are drawn from; then the last of them
  // was drawn from `hidden`.
  bool wants_hidden(const Sequence& sequence) const {
    return sequence.speculation.max_drafts > 0 && drafter_->reads_hidden();
  }
  // Whether steps are to report the sequence's rows, which are then handed to read().
  bool wants_rows(const Sequence& sequence) const {
    return sequence.speculation.max_drafts > 0 && drafter_->reads_rows() && !is_off();
  }
  // `rows`: those of the tokens from `first_token` on.
  void add_computed(Sequence& sequence, int32_t first_token, std::span<const float> rows);
  // Hands on what was added since the last call.
  void read_computed();
  static void drawn_from(Sequence& sequence, std::span<const float> hidden) {
    sequence.speculation.hidden.assign(hidden.begin(), hidden.end());
  }

  // Of a step's drafts so many were drawn.
  void verified(Sequence& sequence, int32_t num_drafts, int32_t num_accepted);

  // A step of decoding sequences alone: how long it took, and from the end of the one before to its
  // own.
  struct StepTime {
    int32_t num_rows = 0;
    double elapsed_ms = 0;
    double interval_ms = 0;  // 0: not known
    int32_t num_sequences = 0;
    int32_t num_tokens = 0;    // that it gave
    bool was_drafted = false;  // a drafter worked for it
  };
  void observe_step(const StepTime& step);

  // Since the last call, for what is scheduled.
  bool has_looked() { return std::exchange(has_looked_, false); }

  const Counts& counts() const { return counts_; }

 private:
  // Drafts that take time have lost too much of it.
  bool is_off() const { return balance_.is_off() && !options_.at_any_price; }
  double acceptance(const Sequence& sequence) const;
  double price(double rows, double tokens) const;
  int32_t num_worthwhile(const Sequence& sequence,
                         int32_t most,
                         double& rows,
                         double& tokens) const;
  static int32_t most_drafts(const Sequence& sequence);
  bool is_due(Sequence& sequence, double rows, double tokens) const;
  static void rest(Speculation& own);
  void look(std::span<Sequence* const> sequences, std::span<const int32_t> num_wanted);
  Drafter::Memory& memory_of(Sequence& sequence);
  void cut(Sequence& sequence) const;
  void learn(Sequence& sequence, double num_tried, double num_right);

  const SpeculatorOptions options_;
  const std::unique_ptr<Drafter> drafter_;
  StepCost cost_;
  DraftBalance balance_;
  double ms_per_draft_ = 0;  // that the drafter takes; 0: not known yet, or none
  double ms_of_last_look_ = 0;
  double ms_since_look_ = 0;
  bool has_looked_ = false;
  Counts counts_;
  // Of the drafts of all sequences, as in Speculation.
  double num_tried_ = 0;
  double num_right_ = 0;
  double last_num_rows_ = 1;  // of the last step

  std::vector<Sequence*> drafting_;
  std::vector<int32_t> num_wanted_;
  std::vector<Drafter::Wanted> wanted_;
  std::vector<Drafter::Computed> computed_;
};

}  // namespace tgi
