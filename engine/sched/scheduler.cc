#include "engine/sched/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

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
  sequence.drafts_are_forced = false;
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
  take_drafts();
  for (Sequence* const sequence : decoding_) {
    emit(*sequence, 1 + static_cast<int32_t>(sequence->draft_ids.size()), batch, scheduled);
  }
}

// Of the rows that decoding leaves, prompts keep at least half. Nobody is preempted for a draft.
void Scheduler::take_drafts() {
  int32_t max_rows = (options_.max_batch_tokens - static_cast<int32_t>(decoding_.size())) / 2;
  max_rows -= take_forced(max_rows);
  if (speculator_ != nullptr) speculator_->draft(decoding_, max_rows);
  for (Sequence* const sequence : decoding_) {
    std::vector<int32_t>& drafts = sequence->draft_ids;
    while (!drafts.empty() &&
           !kv_cache_.grow(sequence->lease, sequence->num_scheduled_tokens + 1 +
                                                static_cast<int32_t>(drafts.size()))) {
      drafts.pop_back();
    }
  }
}

// What a form forces is known without a guess: its tokens are computed as one chunk.
int32_t Scheduler::take_forced(int32_t max_rows) {
  int32_t num_rows = 0;
  for (Sequence* const sequence : decoding_) {
    sequence->drafts_are_forced = false;
    // One more is drawn behind them.
    const int32_t most =
        std::min({options_.max_forced_tokens, max_rows - num_rows,
                  sequence->request->max_new_tokens - sequence->num_generated_tokens() - 1});
    if (most <= 0 || sequence->num_pending_tokens > 0) continue;
    const std::span<const int32_t> forced = sequence->forced_tokens();
    const auto count = std::min(forced.size(), static_cast<size_t>(most));
    if (count == 0) continue;
    sequence->draft_ids.assign(forced.begin(), forced.begin() + static_cast<ptrdiff_t>(count));
    sequence->drafts_are_forced = true;
    num_rows += static_cast<int32_t>(count);
  }
  return num_rows;
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

}  // namespace tgi
