// What a step tells the device, laid out as one run of bytes: written into pinned memory, copied
// with one transfer to a fixed address that kernels (and captured steps) read. Sizes follow from
// the layouts in closed form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/attention_plan.h"
#include "cuda/kernels/attention.h"
#include "cuda/kernels/rows.h"
#include "cuda/kernels/step.h"
#include "engine/device/backend.h"
#include "engine/tensor/batch.h"

namespace tgi::cuda {

struct StepCapacity {
  int32_t num_slots = 0;
  int32_t max_blocks = 0;  // of a slot, in all groups
  int32_t max_tokens = 0;
  int32_t max_logit_rows = 0;
  int32_t max_items = 0;
  int32_t max_merges = 0;
  int32_t max_tiles = 0;
  int32_t num_decode_blocks = 0;

  static StepCapacity of(const SlotLayout& slots, const AttentionPlanOptions& plan);
};

// The arrays of a step at some base address, of the host or of the device.
struct StepArrays {
  TokenRow* tokens = nullptr;
  LogitRow* logit_rows = nullptr;
  SequenceRows* sequences = nullptr;
  DecodeItem* items = nullptr;
  int32_t* block_begin = nullptr;
  DecodeMerge* merges = nullptr;
  int32_t* num_merges = nullptr;
  PrefillTile* tiles = nullptr;
  SlotStartRow* starts = nullptr;
  BlockAppendRow* appends = nullptr;  // last: only as much of it is copied as there is
  size_t size_bytes = 0;

  static StepArrays at(void* base, const StepCapacity& capacity);

  DeviceAttentionPlan attention() const {
    return {.sequences = sequences,
            .items = items,
            .block_begin = block_begin,
            .merges = merges,
            .num_merges = num_merges,
            .tiles = tiles};
  }
};

// How large the step is made: more than the batch where a captured step is padded; then each row
// that is added counts as a sequence.
struct StepShape {
  int32_t num_tokens = 0;
  int32_t num_logit_rows = 0;
  int32_t num_sequences = 0;
  bool has_drafts = false;  // among the tokens: some rows are verified
  bool operator==(const StepShape&) const = default;
};

// Fills the arrays of `host` with the batch and its plan, padded to `shape` with rows of nobody's
// slot, each a sequence of one token; returns how many bytes of them are to be copied. Slot starts
// and appends are written too. REQUIRES: capacity.
size_t fill_step(const Batch& batch,
                 const StepShape& shape,
                 const AttentionPlanOptions& options,
                 const StepCapacity& capacity,
                 AttentionPlan& plan,
                 const StepArrays& host);

// Sampling parameters as the kernels read them. The bias is apart.
SlotSampling slot_sampling(const SamplingParams& params);

}  // namespace tgi::cuda
