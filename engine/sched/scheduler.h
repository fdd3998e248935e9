// Which tokens run in the next step: continuous batching under a token budget. Pure policy: no
// tensors, no clock of its own, no model. Belongs to the engine thread.
//
// Per step, in this order:
//   1. every running sequence that decodes gets one row, and more where its form forces tokens or
//      drafts are worth it (while these are in flight it gets no other); out of blocks, the
//      youngest is preempted (what it computed stays findable in the prefix cache) and waits at the
//      front; where a step in flight still holds what that freed, the one that wants it sits this
//      step out;
//   2. running prefills, oldest first, get chunks from what is left of the budget;
//   3. waiting sequences are admitted in order while slots and blocks last.
// A prefill whose next block is just being computed by an older twin sits the step out and shares
// the twin's block.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "engine/sched/kv_cache.h"
#include "engine/sched/sequence.h"
#include "engine/sched/speculator.h"
#include "engine/tensor/batch.h"

namespace tgi {

struct SchedulerOptions {
  int32_t max_running = 64;        // slots
  int32_t max_batch_tokens = 512;  // token rows of one step
  int32_t min_chunk_tokens = 16;   // a prefill chunk is not cut smaller for latency's sake
  // With decodes running, chunks shrink so that a step stays below; 0: off.
  double target_step_ms = 0;
  // Whether what one sequence computed serves another with the same prefix. Not where layers carry
  // a state: that of the prefix's end is gone. Then every sequence computes all of its prompt, and
  // again after a preemption.
  bool shares_prefixes = true;
  // A prompt is computed in one step, as its tokens see those after them. REQUIRES: prompts are no
  // longer than max_batch_tokens.
  bool whole_prompts = false;
  // Of a sequence, tokens that its form forces and that a step takes along at most; 0: each has a
  // step of its own.
  int32_t max_forced_tokens = 0;
};

// One submitted step: which sequence each result is for, in the batch's order.
struct ScheduledStep {
  uint64_t step = 0;
  struct Part {
    Sequence* sequence = nullptr;
    int32_t num_tokens = 0;
    int32_t first_token = 0;         // of the sequence
    int32_t num_pooled = 0;          // results of hidden states that come back for it
    int32_t num_scores = 0;          // prompt log-probabilities that come back for it
    int32_t first_scored_token = 0;  // the first is that of this prompt token
    bool samples = false;
    int32_t num_drafts = 0;  // the last of its tokens; each has a sampled token of its own
    bool drafts_are_forced = false;
    int32_t num_preemptions = 0;  // of the sequence when this was scheduled
    // Sampled tokens that may be taken: of masked rows, those whose mask there is.
    int32_t max_appended = std::numeric_limits<int32_t>::max();
    // Set when it retires: so many sampled tokens are now the sequence's last, ...
    int32_t num_appended = 0;
    bool not_finite = false;  // ... and then the logits were no distribution: there is no token

    int32_t num_sampled() const { return samples ? 1 + num_drafts : 0; }

    // The sequence still wants what this part computes.
    bool is_current() const {
      return !sequence->finished && sequence->num_preemptions == num_preemptions;
    }
  };
  std::vector<Part> parts;
  int32_t num_prefill_tokens = 0;
  int32_t num_decode_tokens = 0;
  bool was_drafted = false;  // a drafter worked for it, or will read it
};

class Scheduler {
 public:
  // `speculator`: (optional) must outlive it.
  Scheduler(const SchedulerOptions& options, KvCache& kv_cache, Speculator* speculator = nullptr);

  // The sequence waits at the end of the queue. Not owned; must stay where it is until removed and
  // out of flight.
  void add(Sequence& sequence);

  // Leaves the queue, to be added again later. False: it has begun, and stays.
  bool withdraw(Sequence& sequence);

  // Finished or cancelled: leaves the queue or its slot, and gives its blocks back.
  void remove(Sequence& sequence);

  // Fills `batch` and `scheduled` with the next step, which the caller must then submit. False:
  // nothing can run now.
  [[nodiscard]] bool next_batch(Batch& batch, ScheduledStep& scheduled);

  // The step retired: tokens are computed, blocks become findable. `sampled` are the ids in the
  // order of the parts that sample. Appends them to sequences that were not removed meanwhile, of
  // a part with drafts up to the first that was not drawn as it was guessed; the caller then
  // decides who is finished, and removes those whose logits were not finite. `pooled`, `reported`:
  // (optional) what the batch asked for (StepResult).
  void step_retired(ScheduledStep& scheduled,
                    std::span<const SampledToken> sampled,
                    std::span<const std::vector<float>> pooled = {},
                    std::span<const float> reported = {});

  // How long a step took, for target_step_ms; and from the end of the one before to its own, for
  // what drafts are worth.
  void observe_step_time(const ScheduledStep& scheduled, double elapsed_ms, double interval_ms = 0);

  int32_t num_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t num_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  int64_t num_preemptions() const { return num_preemptions_; }

 private:
  void schedule_decodes(Batch& batch, ScheduledStep& scheduled);
  void take_drafts();
  int32_t take_forced(int32_t max_rows);
  void schedule_prefills(Batch& batch, ScheduledStep& scheduled, int32_t budget);
  void admit_waiting(Batch& batch, ScheduledStep& scheduled, int32_t budget);
  bool preempt_paused();
  bool grow_or_preempt(Sequence& sequence, int32_t& num_promised);
  bool try_admit(Sequence& sequence);
  int32_t schedule_chunk(Sequence& sequence,
                         int32_t budget,
                         Batch& batch,
                         ScheduledStep& scheduled);
  void emit(Sequence& sequence, int32_t num_tokens, Batch& batch, ScheduledStep& scheduled);
  static void emit_pooled(const Request& request,
                          int32_t first_row,
                          bool is_last,
                          ScheduledStep::Part& part,
                          Batch& batch);
  static void append_drawn(ScheduledStep::Part& part, std::span<const SampledToken> drawn);
  void hand_on_rows(const ScheduledStep::Part& part, std::span<const float> rows);
  bool may_share(const Sequence& sequence) const;
  int32_t num_matchable_tokens(const Sequence& sequence) const;
  bool twin_is_ahead(const Sequence& sequence, size_t num_older) const;
  int32_t chunk_budget(const ScheduledStep& scheduled) const;
  void preempt(Sequence& sequence);
  void leave_slot(Sequence& sequence);

  const SchedulerOptions options_;
  KvCache& kv_cache_;
  Speculator* const speculator_;
  std::vector<Sequence*> decoding_;  // of the step that is made
  std::deque<Sequence*> waiting_;    // first in front
  std::vector<Sequence*> running_;   // oldest admission first
  std::vector<int32_t> free_slots_;
  uint64_t last_step_ = 0;
  int64_t num_preemptions_ = 0;
  double ms_per_prefill_token_ = 0;  // measured; 0: not yet
};

}  // namespace tgi
