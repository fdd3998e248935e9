// How what a step gave is taken over: tokens drawn, drafts verified, rows to draft from, times.
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "engine/sched/scheduler.h"

namespace tgi {

void Scheduler::step_retired(ScheduledStep& scheduled,
                             std::span<const SampledToken> sampled,
                             std::span<const std::vector<float>> pooled,
                             std::span<const float> reported) {
  kv_cache_.step_retired(scheduled.step);
  const int32_t num_rows = scheduled.num_prefill_tokens + scheduled.num_decode_tokens;
  const size_t reported_cols = reported.size() / static_cast<size_t>(std::max(num_rows, 1));
  size_t next_sampled = 0;
  size_t next_pooled = 0;
  for (ScheduledStep::Part& part : scheduled.parts) {
    Sequence& sequence = *part.sequence;
    --sequence.num_steps_in_flight;
    const size_t first_pooled = next_pooled;
    next_pooled += static_cast<size_t>(part.num_pooled);
    const auto tokens = sampled.subspan(next_sampled, static_cast<size_t>(part.num_sampled()));
    next_sampled += tokens.size();
    const auto rows = reported.first(reported_cols * static_cast<size_t>(part.num_tokens));
    reported = reported.subspan(rows.size());
    // Preempted while in flight: the token is not lost, it is drawn again, and the same, when its
    // turn comes.
    if (!part.is_current()) continue;
    append_drawn(part, tokens);
    if (!rows.empty()) hand_on_rows(part, rows);
    if (part.num_appended > 0 && part.num_pooled > 0) {
      const size_t last = first_pooled + static_cast<size_t>(part.num_appended) - 1;
      Speculator::drawn_from(sequence, pooled[last]);
    }
    if (part.num_drafts > 0 && !part.drafts_are_forced && speculator_ != nullptr) {
      speculator_->verified(sequence, part.num_drafts, std::max(part.num_appended - 1, 0));
    }
    // What a step computed whose logits are not finite is not handed on to others.
    if (part.not_finite && part.num_appended == 0) continue;
    if (may_share(sequence)) {
      kv_cache_.publish(sequence.request->adapter_id(),
                        std::span<const int32_t>(sequence.token_ids), sequence.num_computed_tokens,
                        sequence.lease);
    }
    kv_cache_.leave_window(sequence.lease, sequence.num_computed_tokens);
  }
  if (speculator_ != nullptr) speculator_->read_computed();
}

// Of drafts those that were drawn; behind each row the text goes on.
void Scheduler::hand_on_rows(const ScheduledStep::Part& part, std::span<const float> rows) {
  Sequence& sequence = *part.sequence;
  if (speculator_ == nullptr || !speculator_->wants_rows(sequence)) return;
  int32_t num_rows = part.num_tokens;
  if (part.samples) num_rows += part.num_appended - part.num_drafts - 1;
  if (num_rows <= 0 || (part.samples && part.num_appended == 0)) return;
  const size_t cols = rows.size() / static_cast<size_t>(part.num_tokens);
  speculator_->add_computed(sequence, part.first_token,
                            rows.first(cols * static_cast<size_t>(num_rows)));
}

// Takes over what a part computed and what was drawn from it: up to the first token that is not the
// draft in its place, or is none.
void Scheduler::append_drawn(ScheduledStep::Part& part, std::span<const SampledToken> drawn) {
  Sequence& sequence = *part.sequence;
  if (!part.samples) {
    sequence.num_computed_tokens += part.num_tokens;
    return;
  }
  const std::vector<int32_t> drafts = std::exchange(sequence.draft_ids, {});
  for (size_t i = 0; i < drawn.size() && part.num_appended < part.max_appended; ++i) {
    if (i > 0 && drawn[i - 1].token.id != drafts[i - 1]) break;
    part.not_finite = std::isnan(drawn[i].token.logprob);
    if (part.not_finite) break;
    sequence.token_ids.push_back(drawn[i].token.id);
    ++part.num_appended;
  }
  if (part.num_appended == 0) return;
  --sequence.num_pending_tokens;
  // The blocks of drafts that were not drawn stay: their rows are written anew.
  sequence.num_computed_tokens += part.num_tokens - part.num_drafts + part.num_appended - 1;
  if (part.num_drafts > 0) sequence.num_scheduled_tokens = sequence.num_computed_tokens;
}

void Scheduler::observe_step_time(const ScheduledStep& scheduled,
                                  double elapsed_ms,
                                  double interval_ms) {
  if (speculator_ != nullptr && scheduled.num_prefill_tokens == 0) {
    Speculator::StepTime step{.num_rows = scheduled.num_decode_tokens,
                              .elapsed_ms = elapsed_ms,
                              .interval_ms = interval_ms,
                              .was_drafted = scheduled.was_drafted};
    for (const ScheduledStep::Part& part : scheduled.parts) {
      ++step.num_sequences;
      step.num_tokens += part.num_appended;
    }
    speculator_->observe_step(step);
  }
  if (scheduled.num_prefill_tokens < options_.min_chunk_tokens) return;
  const double measured = elapsed_ms / (scheduled.num_prefill_tokens + scheduled.num_decode_tokens);
  ms_per_prefill_token_ =
      ms_per_prefill_token_ <= 0 ? measured : 0.7 * ms_per_prefill_token_ + 0.3 * measured;
}

}  // namespace tgi
