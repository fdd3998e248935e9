#include "cuda/step_buffer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace tgi::cuda {
namespace {

constexpr size_t kAlignment = 256;

template <typename T>
T* take(uintptr_t base, size_t& offset, int64_t count) {
  T* const out = reinterpret_cast<T*>(base + offset);
  offset += (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  return out;
}

template <typename T>
void copy(const std::vector<T>& from, T* to, int32_t capacity) {
  TGI_CHECK(static_cast<int64_t>(from.size()) <= capacity);
  std::copy(from.begin(), from.end(), to);
}

}  // namespace

StepCapacity StepCapacity::of(const SlotLayout& slots, const AttentionPlanOptions& plan) {
  return {.num_slots = slots.num_slots,
          .max_blocks = slots.num_groups * slots.max_blocks_per_slot,
          .max_tokens = slots.max_batch_tokens,
          .max_logit_rows = slots.max_batch_tokens,
          .max_items = max_decode_items(slots.num_slots, plan),
          .max_merges = max_decode_merges(slots.num_slots, plan),
          .max_tiles = max_prefill_tiles(slots.num_slots, slots.max_batch_tokens),
          .num_decode_blocks = plan.num_blocks};
}

StepArrays StepArrays::at(void* base, const StepCapacity& capacity) {
  const auto bytes = reinterpret_cast<uintptr_t>(base);  // null to only count
  size_t offset = 0;
  StepArrays out;
  out.tokens = take<TokenRow>(bytes, offset, capacity.max_tokens);
  out.logit_rows = take<LogitRow>(bytes, offset, capacity.max_logit_rows);
  out.sequences = take<SequenceRows>(bytes, offset, capacity.num_slots);
  out.items = take<DecodeItem>(bytes, offset, capacity.max_items);
  out.block_begin = take<int32_t>(bytes, offset, capacity.num_decode_blocks + 1);
  out.merges = take<DecodeMerge>(bytes, offset, capacity.max_merges);
  out.num_merges = take<int32_t>(bytes, offset, 1);
  out.tiles = take<PrefillTile>(bytes, offset, capacity.max_tiles);
  out.starts = take<SlotStartRow>(bytes, offset, capacity.num_slots);
  out.appends =
      take<BlockAppendRow>(bytes, offset, int64_t{capacity.num_slots} * capacity.max_blocks);
  out.size_bytes = offset;
  return out;
}

SlotSampling slot_sampling(const SamplingParams& params) {
  return {.temperature = params.temperature,
          .top_p = params.top_p,
          .typical_p = params.typical_p,
          .min_p = params.min_p,
          .repetition_penalty = params.repetition_penalty,
          .frequency_penalty = params.frequency_penalty,
          .presence_penalty = params.presence_penalty,
          .top_k = params.top_k,
          .top_n_tokens = params.top_n_tokens,
          .num_bias = static_cast<int32_t>(params.logit_bias.size()),
          .sequence_index = params.sequence_index,
          .do_sample = params.do_sample,
          .watermark = params.watermark,
          .has_penalties = params.has_penalties(),
          .seed = params.seed};
}

size_t fill_step(const Batch& batch,
                 const StepShape& shape,
                 const AttentionPlanOptions& options,
                 const StepCapacity& capacity,
                 AttentionPlan& plan,
                 const StepArrays& host) {
  TGI_CHECK(shape.num_tokens <= capacity.max_tokens &&
            shape.num_logit_rows <= capacity.max_logit_rows);
  TGI_CHECK(batch.num_tokens() <= shape.num_tokens && batch.num_sequences() <= capacity.num_slots);
  const int32_t nobody = capacity.num_slots;
  for (int32_t i = 0; i < batch.num_sequences(); ++i) {
    const auto at = static_cast<size_t>(i);
    const int32_t begin = batch.cu_seqlens_q[at];
    const int32_t end = batch.cu_seqlens_q[at + 1];
    const int32_t context_len = batch.context_lens[at];
    host.sequences[i] = {.slot = batch.slots[at],
                         .first_row = begin,
                         .num_rows = end - begin,
                         .context_len = context_len};
    for (int32_t row = begin; row < end; ++row) {
      const auto token = static_cast<size_t>(row);
      host.tokens[row] = {.token_id = batch.token_ids[token],
                          .position = batch.positions[token],
                          .slot = batch.slots[at],
                          .context_index = context_len - (end - row)};
    }
  }
  std::fill(host.tokens + batch.num_tokens(), host.tokens + shape.num_tokens,
            TokenRow{.token_id = 0, .position = 0, .slot = nobody, .context_index = 0});
  TGI_CHECK(shape.num_sequences <= capacity.num_slots);
  for (int32_t i = batch.num_sequences(); i < shape.num_sequences; ++i) {
    const int32_t row = batch.num_tokens() + i - batch.num_sequences();
    host.sequences[i] = {.slot = nobody, .first_row = row, .num_rows = 1, .context_len = 1};
  }

  LogitRow* row = host.logit_rows;
  batch.visit_sample_rows([&](const SampleRow& sample, int32_t mask) {
    if (sample.num_drafts == 1) row[-1].is_verified = true;
    *row++ = {.row = sample.row,
              .slot = sample.slot,
              .position = sample.position,
              .mask = mask,
              .num_drafts = sample.num_drafts,
              .is_verified = sample.num_drafts > 0};
  });
  for (const ScoreRow& score : batch.score_rows) {
    *row++ = {.row = score.row,
              .slot = -1,
              .position = 0,
              .target_id = score.target_id,
              .num_top = score.num_top};
  }
  std::fill(row, host.logit_rows + shape.num_logit_rows,
            LogitRow{.row = 0, .slot = nobody, .position = 0, .target_id = 0});

  plan_attention(std::span(host.sequences, static_cast<size_t>(batch.num_sequences())), options,
                 plan);
  copy(plan.items, host.items, capacity.max_items);
  copy(plan.block_begin, host.block_begin, capacity.num_decode_blocks + 1);
  copy(plan.merges, host.merges, capacity.max_merges);
  *host.num_merges = static_cast<int32_t>(plan.merges.size());
  copy(plan.tiles, host.tiles, capacity.max_tiles);

  SlotStartRow* start = host.starts;
  for (const SlotStart& each : batch.slot_starts) {
    *start++ = {.slot = each.slot,
                .last_token = each.token_ids.empty() ? 0 : each.token_ids.back(),
                .adapter = each.adapter,
                .sampling = slot_sampling(each.sampling)};
  }
  BlockAppendRow* append = host.appends;
  for (const BlockAppend& each : batch.block_appends) {
    *append++ = {.slot = each.slot, .index = each.index, .block = each.block, .group = each.group};
  }
  return static_cast<size_t>(reinterpret_cast<std::byte*>(append) -
                             reinterpret_cast<std::byte*>(host.tokens));
}

}  // namespace tgi::cuda
