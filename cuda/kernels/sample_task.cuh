// What the three kernels of launch_sample share: their argument, their memory, and what a row asks
// for.
//
// A row is cut into chunks of kChunkIds ids, always the same ones, so that neither the number of
// rows nor that of CUDA blocks decides in which order floats are added; whatever is added across
// CUDA blocks is an integer.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/sample.h"

namespace tgi::cuda {

using Wide = unsigned long long;  // what atomics and shuffles take as 64 bits

inline constexpr int kSampleThreads = 256;
inline constexpr int kIdsPerThread = 16;
inline constexpr int32_t kChunkIds = kSampleThreads * kIdsPerThread;
inline constexpr int kNumBins = kSampleThreads;  // one a thread
inline constexpr uint32_t kMaxListed = 8192;     // values of a row that the filters' list holds
inline constexpr uint32_t kMaxListedTops = 2048;
inline constexpr int32_t kMaxSampleRows = 512;  // of one launch of the kernels

// The highest of something, packed to be compared as one integer: order_key << 32 | ~id, so that
// the lowest id wins a tie. 0: nothing.
using PackedBest = Wide;

// What is found in a chunk of a row.
struct ChunkStats {
  float raw_highest;  // +infinity also when there is a NaN
  float raw_sum;      // of exp(x - raw_highest)
  PackedBest top;     // of the logits as they are drawn from
  PackedBest race;    // rows without filters: the winner; speeds are relative to `top`
  double weight;      // rows that begin with typical-p: sum of w = exp(t - top)
  double surprises;   // ... and of w * (t - top)
};

// What is known of a row.
struct RowState {
  float raw_highest;     // infinite: the logits are not finite
  float highest;         // of the logits as they are drawn from
  double raw_log_total;  // log of the sum of exp(x - raw_highest)
  double log_total;      // rows that begin with typical-p: of exp(t - highest)
  double entropy;        // ... and its entropy
  Wide total_mass;       // of all ids, rows that begin with top-p or typical-p
  int32_t last_bin;      // what the filters can keep is in bins up to this one
  int32_t last_top_bin;
};

// What CUDA blocks count together. scan_rows clears them.
struct RowCounters {
  uint32_t num_binned;  // CUDA blocks that are done
  uint32_t num_filtered;
  uint32_t num_listed;  // more than kMaxListed: the list is of no use
  uint32_t num_listed_tops;
};

struct Candidate {
  float value;
  int32_t id;
};

struct SampleTask {
  SampleLaunch launch;
  int32_t num_chunks = 0;  // of a row
  bool aligned = false;    // rows of logits begin at multiples of 16 bytes
  // In the workspace.
  RowState* states = nullptr;       // (num_rows)
  RowCounters* counters = nullptr;  // (num_rows)
  Wide* bins = nullptr;             // (num_rows, 2, kNumBins) for the filters, for the alternatives
  ChunkStats* chunks = nullptr;     // (num_rows, num_chunks)
  Candidate* listed = nullptr;      // (num_rows, kMaxListed)
  Candidate* listed_tops = nullptr;  // (num_rows, kMaxListedTops)
};

// The filter that works first; the others work on what it left.
enum class FirstFilter { kNone, kTopK, kTopP, kTypical, kMinP };

// What a row of logits is for.
struct RowPlan {
  LogitRow row;
  SlotSampling sampling;  // of rows that draw
  bool is_padding;
  bool draws;
  bool races;  // draws by the noise over all ids: no filters
  FirstFilter first;
  int32_t num_tops;
};

// What is known of an id when it has come once more in the output.
__device__ __forceinline__ uint16_t counted_in_output(uint16_t count) {
  const uint32_t in_output = count & kOutputCountMask;
  return static_cast<uint16_t>(kSeenToken | min(in_output + 1U, uint32_t{kOutputCountMask}));
}

// The slot's sequence has one more token. One thread calls this.
__device__ __forceinline__ void record_token(const SlotTables& slots, int32_t slot, int32_t id) {
  slots.last_tokens[slot] = id;
  if (!slots.sampling[slot].has_penalties) return;
  uint16_t& seen = slots.token_counts[static_cast<int64_t>(slot) * slots.vocab_size + id];
  seen = counted_in_output(seen);
}

__device__ __forceinline__ FirstFilter first_filter(const SlotSampling& sampling,
                                                    int32_t vocab_size) {
  if (!sampling.do_sample) return FirstFilter::kNone;
  if (sampling.top_k > 0 && sampling.top_k < vocab_size) return FirstFilter::kTopK;
  if (sampling.top_p < 1.0F) return FirstFilter::kTopP;
  if (sampling.typical_p < 1.0F) return FirstFilter::kTypical;
  return sampling.min_p > 0.0F ? FirstFilter::kMinP : FirstFilter::kNone;
}

__device__ __forceinline__ RowPlan plan_row(const SampleLaunch& launch, unsigned index) {
  RowPlan plan;
  plan.row = launch.rows[index];
  plan.is_padding = plan.row.slot >= launch.slots.num_slots;
  plan.draws = plan.row.slot >= 0 && !plan.is_padding;
  plan.races = false;
  plan.first = FirstFilter::kNone;
  plan.num_tops = 0;
  if (!plan.draws) {
    if (!plan.is_padding) {
      plan.num_tops = min(min(plan.row.num_top, kMaxTopTokens), launch.slots.vocab_size);
    }
    return plan;
  }
  plan.sampling = launch.slots.sampling[plan.row.slot];
  plan.first = first_filter(plan.sampling, launch.slots.vocab_size);
  plan.races = plan.sampling.do_sample && plan.first == FirstFilter::kNone;
  plan.num_tops = min(min(plan.sampling.top_n_tokens, kMaxTopTokens), launch.slots.vocab_size);
  return plan;
}

// Each is one kernel. Grid: (num_chunks, rows); the others (any number of CUDA blocks, rows).
void launch_scan_rows(cudaStream_t stream, const SampleTask& task);
void launch_bin_rows(cudaStream_t stream, const SampleTask& task, uint32_t blocks_per_row);
void launch_filter_rows(cudaStream_t stream, const SampleTask& task, uint32_t blocks_per_row);

}  // namespace tgi::cuda
