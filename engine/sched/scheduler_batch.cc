// How the rows of a sequence are written into the batch of a step.
#include <algorithm>
#include <vector>

#include "engine/sched/scheduler.h"

namespace tgi {

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
                           .drafts_are_forced = num_drafts > 0 && sequence.drafts_are_forced,
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

}  // namespace tgi
