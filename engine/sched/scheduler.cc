#include "engine/sched/scheduler.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/error.h"

namespace tgi {
namespace {

// How far past a sequence that must wait for its twin the queue is searched for others to admit.
constexpr size_t kMaxLookahead = 64;

std::span<const int32_t> tokens_of(const Sequence& sequence) {
  return sequence.token_ids;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, KvCache& kv_cache, Speculator* speculator)
    : options_(options), kv_cache_(kv_cache), speculator_(speculator) {
  for (int32_t slot = options.max_running - 1; slot >= 0; --slot) free_slots_.push_back(slot);
  running_.reserve(free_slots_.size());
}

bool Scheduler::may_share(const Sequence& sequence) const {
  return options_.shares_prefixes && sequence.request->use_prefix_cache;
}

// The prefix that may come from the cache. The last token is never matched: its logits are needed.
int32_t Scheduler::num_matchable_tokens(const Sequence& sequence) const {
  if (!may_share(sequence)) return 0;
  // A prompt token that is still to be scored must be computed here.
  const bool scores = sequence.request->prompt_logprobs && sequence.sampling.sequence_index == 0 &&
                      sequence.num_scored_tokens < sequence.num_prompt_tokens;
  return scores ? sequence.num_scored_tokens - 1 : sequence.num_tokens() - 1;
}

void Scheduler::add(Sequence& sequence) {
  waiting_.push_back(&sequence);
}

void Scheduler::remove(Sequence& sequence) {
  sequence.finished = true;
  if (sequence.slot >= 0) {
    leave_slot(sequence);
  } else {
    std::erase(waiting_, &sequence);
  }
  sequence.lease.reset();
}

bool Scheduler::withdraw(Sequence& sequence) {
  if (sequence.slot >= 0 || sequence.num_preemptions > 0) return false;
  return std::erase(waiting_, &sequence) > 0;
}

void Scheduler::leave_slot(Sequence& sequence) {
  free_slots_.push_back(sequence.slot);
  sequence.slot = -1;
  sequence.num_slot_places = 0;
  sequence.slot_is_started = false;
  std::erase(running_, &sequence);
}

void Scheduler::preempt(Sequence& sequence) {
  leave_slot(sequence);
  sequence.lease.reset();  // what was computed has been published as it was computed
  sequence.num_computed_tokens = 0;
  sequence.num_scheduled_tokens = 0;
  sequence.num_pending_tokens = 0;
  sequence.draft_ids.clear();
  // Scores in flight still arrive: num_scored_tokens stays.
  ++sequence.num_preemptions;
  ++num_preemptions_;
  waiting_.push_front(&sequence);
}

bool Scheduler::next_batch(Batch& batch, ScheduledStep& scheduled) {
  batch.clear();
  scheduled.parts.clear();
  scheduled.num_prefill_tokens = 0;
  scheduled.num_decode_tokens = 0;

  schedule_decodes(batch, scheduled);
  schedule_prefills(batch, scheduled, chunk_budget(scheduled));
  admit_waiting(batch, scheduled, chunk_budget(scheduled) - scheduled.num_prefill_tokens);
  if (batch.num_tokens() == 0 && preempt_paused())
    admit_waiting(batch, scheduled, chunk_budget(scheduled));

  if (batch.num_tokens() == 0) return false;
  scheduled.was_drafted =
      speculator_ != nullptr && (speculator_->has_looked() || batch.reports_rows);
  scheduled.step = ++last_step_;
  kv_cache_.step_submitted(last_step_);
  return true;
}

// Slow readers must not keep others out: when nothing else can run, the youngest of them gives up
// its blocks.
bool Scheduler::preempt_paused() {
  if (kv_cache_.has_steps_in_flight()) return false;  // nothing would come back before they retire
  if (std::all_of(waiting_.begin(), waiting_.end(),
                  [](const Sequence* waiting) { return waiting->paused; })) {
    return false;
  }
  for (size_t i = running_.size(); i-- > 0;) {
    if (!running_[i]->paused) continue;
    preempt(*running_[i]);
    return true;
  }
  return false;
}

int32_t Scheduler::chunk_budget(const ScheduledStep& scheduled) const {
  const int32_t rows_left = options_.max_batch_tokens - scheduled.num_decode_tokens;
  if (scheduled.num_decode_tokens == 0 || options_.target_step_ms <= 0 ||
      ms_per_prefill_token_ <= 0) {
    return rows_left;
  }
  const double affordable = options_.target_step_ms / ms_per_prefill_token_;
  const auto chunk = static_cast<int32_t>(std::min(affordable, 1e9));
  return std::min(rows_left, std::max(chunk, options_.min_chunk_tokens));
}

// Makes room for one more token of a sequence that decodes, if need be by preempting the youngest.
// `num_promised` counts the blocks that are spoken for among those that come back when the steps in
// flight have retired. False: the sequence was preempted itself, or sits the step out.
bool Scheduler::grow_or_preempt(Sequence& sequence, int32_t& num_promised) {
  const int32_t num_tokens = sequence.num_scheduled_tokens + 1;
  while (!kv_cache_.grow(sequence.lease, num_tokens)) {
    // At least one: of the cached blocks some can't be evicted.
    const int32_t missing = std::max(kv_cache_.num_missing_blocks(sequence.lease, num_tokens), 1);
    if (missing <= kv_cache_.num_retiring() - num_promised) {
      num_promised += missing;
      return false;
    }
    // Oldest first: whoever is younger than this one is not in the step yet.
    Sequence& youngest = *running_.back();
    preempt(youngest);
    if (&youngest == &sequence) return false;
  }
  return true;
}

void Scheduler::schedule_decodes(Batch& batch, ScheduledStep& scheduled) {
  int32_t num_promised = 0;
  decoding_.clear();
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.paused || sequence.num_unscheduled_tokens() != 1) continue;
    if (std::ssize(decoding_) >= options_.max_batch_tokens) break;
    // Its last token may already be in flight: then it ends by length before the next one matters.
    if (sequence.num_pending_tokens > 0 &&
        sequence.num_generated_tokens() + sequence.num_pending_tokens >=
            sequence.request->max_new_tokens)
      continue;
    if (sequence.num_pending_tokens > 0 && speculator_ != nullptr &&
        speculator_->waits_for_token(sequence))
      continue;
    if (grow_or_preempt(sequence, num_promised)) decoding_.push_back(&sequence);
  }
  if (speculator_ != nullptr) take_drafts();
  for (Sequence* const sequence : decoding_) {
    emit(*sequence, 1 + static_cast<int32_t>(sequence->draft_ids.size()), batch, scheduled);
  }
}

// Of the rows that decoding leaves, prompts keep at least half. Nobody is preempted for a draft.
void Scheduler::take_drafts() {
  const auto num_rows = static_cast<int32_t>(decoding_.size());
  speculator_->draft(decoding_, (options_.max_batch_tokens - num_rows) / 2);
  for (Sequence* const sequence : decoding_) {
    std::vector<int32_t>& drafts = sequence->draft_ids;
    while (!drafts.empty() &&
           !kv_cache_.grow(sequence->lease, sequence->num_scheduled_tokens + 1 +
                                                static_cast<int32_t>(drafts.size()))) {
      drafts.pop_back();
    }
  }
}

void Scheduler::schedule_prefills(Batch& batch, ScheduledStep& scheduled, int32_t budget) {
  for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.paused || !sequence.is_prefilling()) continue;
    if (twin_is_ahead(sequence, i)) continue;
    budget -= schedule_chunk(sequence, budget, batch, scheduled);
  }
  // Prefills alone can fill the cache between them. The oldest must always get on; left alone it
  // may hold what the prefix cache has once more, and begins again with that. While a step is in
  // flight that is waited for: it may free what is wanted, and nothing comes back before.
  if (batch.num_tokens() == 0 && !running_.empty() && !kv_cache_.has_steps_in_flight()) {
    const bool oldest_is_stuck = std::any_of(
        running_.begin(), running_.end(),
        [](const Sequence* sequence) { return !sequence->paused && sequence->is_prefilling(); });
    if (oldest_is_stuck) {
      preempt(*running_.back());
      schedule_prefills(batch, scheduled, budget);
    }
  }
}

void Scheduler::admit_waiting(Batch& batch, ScheduledStep& scheduled, int32_t budget) {
  size_t i = 0;
  while (budget > 0 && i < std::min(waiting_.size(), kMaxLookahead) && !free_slots_.empty()) {
    Sequence& sequence = *waiting_[i];
    if (sequence.paused || twin_is_ahead(sequence, running_.size())) {
      ++i;
      continue;
    }
    if (options_.whole_prompts && sequence.num_tokens() > budget) return;
    if (!try_admit(sequence)) return;
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    budget -= schedule_chunk(sequence, budget, batch, scheduled);
  }
}

bool Scheduler::try_admit(Sequence& sequence) {
  KvLease lease = kv_cache_.match(sequence.request->adapter_id(), tokens_of(sequence),
                                  num_matchable_tokens(sequence));
  const int32_t num_matched = lease.length() * kv_cache_.block_size();
  // Room for the whole prompt and a block for each of those that run: blocks are taken as sequences
  // grow, but letting in what can't even be prefilled would only preempt it again.
  const KvGroups& groups = kv_cache_.groups();
  const int64_t wanted =
      groups.blocks_of_context(sequence.num_tokens() + 1, options_.max_batch_tokens,
                               kv_cache_.block_size()) -
      lease.num_blocks();
  const int32_t reserve = num_running() * groups.num_groups();
  if (!running_.empty() && wanted + reserve > kv_cache_.num_free() + kv_cache_.num_cached()) {
    lease.drop_unused();
    return false;
  }

  sequence.lease = std::move(lease);
  sequence.num_computed_tokens = num_matched;
  sequence.num_scheduled_tokens = num_matched;
  if (sequence.num_preemptions == 0) sequence.num_cached_tokens = num_matched;
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  running_.push_back(&sequence);
  return true;
}

// True when an older running prefill is about to compute the very block this sequence needs next.
bool Scheduler::twin_is_ahead(const Sequence& sequence, size_t num_older) const {
  if (!may_share(sequence)) return false;
  const int32_t block_size = kv_cache_.block_size();
  int32_t reach = sequence.num_scheduled_tokens;
  if (sequence.slot < 0) {
    reach =
        std::min(kv_cache_.num_matching_tokens(sequence.request->adapter_id(), sequence.token_ids),
                 num_matchable_tokens(sequence) / block_size * block_size);
  }
  const int32_t needed = reach + block_size;
  if (reach % block_size != 0 || needed > num_matchable_tokens(sequence)) return false;
  for (size_t i = 0; i < num_older; ++i) {
    const Sequence& older = *running_[i];
    // Done with the block means published: a match would have found it.
    if (&older == &sequence || older.paused || !older.request->use_prefix_cache) continue;
    if (older.num_computed_tokens >= needed || older.num_tokens() < needed) continue;
    if (older.request->adapter_id() != sequence.request->adapter_id()) continue;
    if (std::equal(older.token_ids.begin(), older.token_ids.begin() + needed,
                   sequence.token_ids.begin())) {
      return true;
    }
  }
  return false;
}

// Takes a chunk of at most `budget` tokens of a running prefill into the step; returns its size. 0:
// no block is free.
int32_t Scheduler::schedule_chunk(Sequence& sequence,
                                  int32_t budget,
                                  Batch& batch,
                                  ScheduledStep& scheduled) {
  const int32_t block_size = kv_cache_.block_size();
  const bool at_block = sequence.num_scheduled_tokens % block_size == 0;
  if (at_block && sequence.num_computed_tokens == sequence.num_scheduled_tokens &&
      sequence.lease.length() * block_size == sequence.num_scheduled_tokens) {
    const int32_t gained =
        kv_cache_.extend_match(sequence.request->adapter_id(), tokens_of(sequence),
                               num_matchable_tokens(sequence), sequence.lease);
    sequence.num_computed_tokens += gained;
    sequence.num_scheduled_tokens += gained;
    if (sequence.num_generated_tokens() == 0 && sequence.num_preemptions == 0) {
      sequence.num_cached_tokens += gained;
    }
  }
  int32_t chunk = std::min(budget, sequence.num_unscheduled_tokens());
  if (options_.whole_prompts) {
    if (chunk < sequence.num_unscheduled_tokens() ||
        !kv_cache_.grow(sequence.lease, sequence.num_scheduled_tokens + chunk)) {
      return 0;
    }
  }
  if (!kv_cache_.grow(sequence.lease, sequence.num_scheduled_tokens + chunk)) {
    const int32_t spare = kv_cache_.num_free() + kv_cache_.num_cached();
    const int32_t reachable =
        (sequence.lease.length() + spare / kv_cache_.groups().num_groups()) * block_size;
    chunk = std::min(chunk, reachable - sequence.num_scheduled_tokens);
    if (chunk <= 0 || !kv_cache_.grow(sequence.lease, sequence.num_scheduled_tokens + chunk))
      return 0;
  }
  emit(sequence, chunk, batch, scheduled);
  return chunk;
}

void Scheduler::emit(Sequence& sequence,
                     int32_t num_tokens,
                     Batch& batch,
                     ScheduledStep& scheduled) {
  const int32_t begin = sequence.num_scheduled_tokens;
  const int32_t end = begin + num_tokens;
  const auto num_drafts = static_cast<int32_t>(sequence.draft_ids.size());
  const int32_t first_row = batch.num_tokens();
  // With its first tokens and not at admission: a batch that stays empty is never submitted.
  if (!sequence.slot_is_started) {
    batch.slot_starts.push_back({.slot = sequence.slot,
                                 .sampling = sequence.sampling,
                                 .token_ids = sequence.token_ids,
                                 .num_prompt_tokens = sequence.num_prompt_tokens,
                                 .adapter = sequence.adapter_place});
    sequence.slot_is_started = true;
  }
  for (int32_t position = begin; position < end; ++position) {
    const bool known = position < sequence.num_tokens();
    if (position < end - num_drafts) {
      batch.token_ids.push_back(known ? sequence.token_ids[static_cast<size_t>(position)]
                                      : -1 - sequence.slot);
    }
    batch.positions.push_back(position);
  }
  batch.token_ids.insert(batch.token_ids.end(), sequence.draft_ids.begin(),
                         sequence.draft_ids.end());
  const std::vector<int32_t>& types = sequence.request->token_types;
  if (!types.empty()) {
    // Rows of those before that have none are of type 0.
    batch.token_types.resize(static_cast<size_t>(first_row), 0);
    batch.token_types.insert(batch.token_types.end(), types.begin() + begin, types.begin() + end);
  } else if (!batch.token_types.empty()) {
    batch.token_types.resize(static_cast<size_t>(batch.num_tokens()), 0);
  }
  batch.slots.push_back(sequence.slot);
  batch.cu_seqlens_q.push_back(batch.num_tokens());
  batch.context_lens.push_back(end);
  const KvLease& lease = sequence.lease;
  for (int32_t i = sequence.num_slot_places; i < lease.length(); ++i) {
    for (int32_t group = 0; group < kv_cache_.groups().num_groups(); ++group) {
      const int32_t block = lease.block(i, group);
      if (block == kNoBlock) continue;
      batch.block_appends.push_back(
          {.slot = sequence.slot, .index = i, .block = block, .group = group});
    }
  }
  sequence.num_slot_places = lease.length();

  ScheduledStep::Part part{.sequence = &sequence,
                           .num_tokens = num_tokens,
                           .first_token = begin,
                           .num_drafts = num_drafts,
                           .num_preemptions = sequence.num_preemptions};
  if (sequence.request->prompt_logprobs && sequence.sampling.sequence_index == 0) {
    part.first_scored_token = std::max(begin + 1, sequence.num_scored_tokens);
    // The row of position p has the logits for token p + 1.
    for (int32_t position = std::max(begin, sequence.num_scored_tokens - 1);
         position < end && position + 1 < sequence.num_prompt_tokens; ++position) {
      batch.score_rows.push_back(
          {.row = first_row + position - begin,
           .target_id = sequence.token_ids[static_cast<size_t>(position) + 1],
           .num_top = sequence.sampling.top_n_tokens});
      ++part.num_scores;
    }
    sequence.num_scored_tokens += part.num_scores;
  }
  sequence.num_scheduled_tokens = end;
  if (speculator_ != nullptr && speculator_->wants_rows(sequence)) batch.reports_rows = true;
  const bool is_last = sequence.num_unscheduled_tokens() + num_drafts == 0;
  emit_pooled(*sequence.request, first_row, is_last, part, batch);
  if (is_last && sequence.request->pooled.empty()) {
    part.samples = true;
    ++sequence.num_pending_tokens;
    for (int32_t i = num_drafts; i >= 0; --i) {
      batch.sample_rows.push_back({.row = first_row + num_tokens - 1 - i,
                                   .slot = sequence.slot,
                                   .position = end - i,
                                   .is_masked = sequence.guide != nullptr,
                                   .num_drafts = num_drafts - i});
      if (speculator_ == nullptr || !speculator_->wants_hidden(sequence)) continue;
      batch.pooled_rows.push_back({.row = static_cast<int32_t>(batch.sample_rows.size()) - 1,
                                   .num_rows = 1,
                                   .position = end - i - 1});
      ++part.num_pooled;
    }
  }
  (part.num_sampled() == num_tokens ? scheduled.num_decode_tokens : scheduled.num_prefill_tokens) +=
      num_tokens;
  ++sequence.num_steps_in_flight;
  scheduled.parts.push_back(part);
}

void Scheduler::emit_pooled(const Request& request,
                            int32_t first_row,
                            bool is_last,
                            ScheduledStep::Part& part,
                            Batch& batch) {
  using Rows = PooledInput::Rows;
  const auto wants = [&](Rows rows) {
    return std::ranges::any_of(request.pooled,
                               [&](const PooledInput& input) { return input.rows == rows; });
  };
  const int32_t last = part.num_tokens - 1;
  const bool has_first = part.first_token == 0 && wants(Rows::kFirst);
  const bool has_last = is_last && wants(Rows::kLast);
  // Of the part, those that are wanted.
  const auto first_kept = static_cast<int32_t>(batch.kept_rows.size());
  int32_t kept_last = last;
  if (wants(Rows::kAll)) {
    for (int32_t row = 0; row <= last; ++row) batch.kept_rows.push_back(first_row + row);
  } else {
    if (has_first) batch.kept_rows.push_back(first_row);
    kept_last = has_first && last > 0 ? 1 : 0;
    if (has_last && (last > 0 || !has_first)) batch.kept_rows.push_back(first_row + last);
  }
  for (const PooledInput& input : request.pooled) {
    PooledRows rows{
        .row = first_kept, .num_rows = 1, .position = part.first_token, .pooling = input.pooling};
    if (input.rows == Rows::kAll) rows.num_rows = part.num_tokens;
    if (input.rows == Rows::kFirst && !has_first) continue;
    if (input.rows == Rows::kLast) {
      if (!has_last) continue;
      rows.row += kept_last;
      rows.position += last;
    }
    batch.pooled_rows.push_back(rows);
    ++part.num_pooled;
  }
}

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
    if (part.num_drafts > 0 && speculator_ != nullptr) {
      speculator_->verified(sequence, part.num_drafts, std::max(part.num_appended - 1, 0));
    }
    // What a step computed whose logits are not finite is not handed on to others.
    if (part.not_finite && part.num_appended == 0) continue;
    if (may_share(sequence)) {
      kv_cache_.publish(sequence.request->adapter_id(), tokens_of(sequence),
                        sequence.num_computed_tokens, sequence.lease);
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
