// From rows of logits to tokens, on the device. Definition: engine/sample/sampler.h (sample_row,
// score_row), whose order of work, tie rules and random numbers (engine/sample/philox.h) these
// kernels share, so that a seed draws the same id wherever the logits are the same but for
// rounding.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/step.h"

namespace tgi::cuda {

// More alternatives than this, ties included, are cut off.
inline constexpr int32_t kMaxTopTokens = 64;

// What a row of logits gave.
struct SampledRow {
  int32_t id = 0;
  // By the raw logits, of `id` or of the row's target_id. NaN: the logits are not finite
  // (engine/sample/sampler.h), `id` is the lowest that is allowed, and there are no alternatives.
  float logprob = 0.0F;
  int32_t num_top = 0;
  int32_t top_ids[kMaxTopTokens];
  float top_logprobs[kMaxTopTokens];
};

struct SampleLaunch {
  SlotTables slots;
  const LogitRow* rows = nullptr;  // (num_rows)
  int32_t num_rows = 0;            // of this call
  const float* logits = nullptr;   // (num_rows, stride): scale and softcap are applied already
  int64_t stride = 0;
  const int32_t* token_ids = nullptr;  // of the step's token rows: the drafts are among them
  const uint32_t* masks = nullptr;  // (number of masks, (vocab + 31) / 32): bits of allowed tokens
  // (optional) (vocab), each once: by whose random bits an id is drawn; null: by its own.
  const int32_t* draw_ids = nullptr;
  void* workspace = nullptr;  // sample_workspace_bytes, of any content
  SampledRow* out = nullptr;  // (num_rows)
};

// About 86 KiB a row, enough for a launch of any number of rows up to max_rows.
int64_t sample_workspace_bytes(int32_t max_rows, int32_t vocab_size);

// Draws or scores each row, writes `out`, and records what was drawn in the slot tables
// (last_tokens, token_counts), but not of rows that are verified. Padding rows (slot num_slots) are
// not written to.
void launch_sample(cudaStream_t stream, const SampleLaunch& launch);

// After all rows of a step are drawn: records those that are verified and count (SampleRow in
// engine/tensor/batch.h). Of the launch `slots`, `rows`, `num_rows`, `token_ids` and `out`.
void launch_record_verified(cudaStream_t stream, const SampleLaunch& launch);

}  // namespace tgi::cuda
