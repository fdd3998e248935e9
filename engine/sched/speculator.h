// Decides for each sequence of a step how many drafts it takes along to be verified, from how many
// of its drafts were right so far and from what a row costs; gets them from a Drafter and cuts off
// what can't be drawn. Never changes an answer. Belongs to the engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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

  // Fills draft_ids of those that a step gives one token each, all of them known; at most
  // `max_drafts` together.
  void draft(std::span<Sequence* const> sequences, int32_t max_drafts);

  // Whether steps are to report what the sequence's tokens are drawn from; then the last of them
  // was drawn from `hidden`.
  bool wants_hidden(const Sequence& sequence) const {
    return sequence.speculation.max_drafts > 0 && drafter_->reads_hidden();
  }
  // Whether steps are to report the sequence's rows, which are then handed to read().
  bool wants_rows(const Sequence& sequence) const {
    return sequence.speculation.max_drafts > 0 && drafter_->reads_rows();
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

  // A step of decoding sequences alone.
  void observe_step(int32_t num_rows, double elapsed_ms) { cost_.observe(num_rows, elapsed_ms); }

  const Counts& counts() const { return counts_; }

 private:
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

  const SpeculatorOptions options_;
  const std::unique_ptr<Drafter> drafter_;
  StepCost cost_;
  double ms_per_draft_ = 0;  // that the drafter takes; 0: not known yet, or none
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
