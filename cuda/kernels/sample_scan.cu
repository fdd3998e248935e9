// The first kernel of launch_sample reads each row once: log-softmax of the logits as they came,
// the highest of those that are drawn from, and for rows without filters the race. A CUDA block a
// chunk.
//
// Bytes: the logits. Work of a race: a quarter of a Philox block and an exponential an id, so that
// from some 200 rows on it is that, not memory, that takes the time.
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/sample_block.cuh"
#include "cuda/kernels/sample_draw.cuh"
#include "cuda/kernels/sample_row.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

// Sum of exp(x - highest).
__device__ __forceinline__ float sum_exp(const float (&x)[kIdsPerThread], float highest) {
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < kIdsPerThread; ++i) sum += __expf(x[i] - highest);
  return sum;
}

__device__ __forceinline__ PackedBest best_of(const float (&x)[kIdsPerThread], int32_t chunk) {
  float highest = -INFINITY;
  int32_t id = 0;
#pragma unroll
  for (int i = 0; i < kIdsPerThread; ++i) {
    if (!(x[i] > highest)) continue;
    highest = x[i];
    id = id_at(first_id(chunk), i);
  }
  return highest > -INFINITY ? pack_best(highest, id) : 0;
}

// The best of the logits as they came: +infinity when there is a NaN, so that both are found by the
// one maximum over the row.
__device__ __forceinline__ PackedBest raw_best_of(const float (&x)[kIdsPerThread], int32_t chunk) {
  bool has_nan = false;
#pragma unroll
  for (int i = 0; i < kIdsPerThread; ++i) has_nan |= x[i] != x[i];
  return has_nan ? pack_best(INFINITY, first_id(chunk)) : best_of(x, chunk);
}

// For the entropy.
__device__ __forceinline__ void weigh(const float (&t)[kIdsPerThread],
                                      float highest,
                                      ChunkStats& out) {
  double weight = 0.0;
  double surprises = 0.0;
  for (int i = 0; i < kIdsPerThread; ++i) {
    const float distance = t[i] - highest;
    const double w = static_cast<double>(expf(distance));
    weight += w;
    if (w > 0.0) surprises += w * static_cast<double>(distance);
  }
  out.weight = block_combine(weight, Sum());
  out.surprises = block_combine(surprises, Sum());
}

__global__ void __launch_bounds__(kSampleThreads, 4)
    scan_rows(const __grid_constant__ SampleTask task) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const unsigned index = blockIdx.y;
  const auto chunk = static_cast<int32_t>(blockIdx.x);
  float x[kIdsPerThread];
  load_raw(raw_source(task, index), chunk, x);
  const RowPlan plan = plan_row(task.launch, index);
  if (plan.is_padding) return;
  const LogitSource source = source_of(task, plan, index);
  const bool is_listed = plan.first != FirstFilter::kNone || plan.num_tops > 0;
  if (chunk == 0 && is_listed) {
    Wide* const bins = task.bins + static_cast<int64_t>(index) * 2 * kNumBins;
    bins[threadIdx.x] = 0;
    bins[kNumBins + threadIdx.x] = 0;
    if (threadIdx.x == 0) task.counters[index] = {};
  }

  const PackedBest raw_top = block_combine(raw_best_of(x, chunk), Highest());
  ChunkStats stats{};
  stats.raw_highest = value_of(raw_top);
  if (raw_top != 0) stats.raw_sum = block_combine(sum_exp(x, stats.raw_highest), Sum());
  if (plan.draws) {
    transform(source, chunk, x);
    stats.top = block_combine(best_of(x, chunk), Highest());
    if (stats.top != 0 && plan.races) {
      stats.race = block_combine(race_chunk(x, chunk, stats.top, noise_source(task.launch, plan)),
                                 Highest());
    }
    if (stats.top != 0 && plan.first == FirstFilter::kTypical) {
      weigh(x, value_of(stats.top), stats);
    }
  }
  if (threadIdx.x == 0) {
    task.chunks[static_cast<int64_t>(index) * task.num_chunks + chunk] = stats;
  }
}

}  // namespace

void launch_scan_rows(cudaStream_t stream, const SampleTask& task) {
  launch(stream,
         {.grid = dim3(static_cast<unsigned>(task.num_chunks),
                       static_cast<unsigned>(task.launch.num_rows)),
          .block = dim3(kSampleThreads),
          .overlaps_previous = true},
         scan_rows, task);
}

}  // namespace tgi::cuda
