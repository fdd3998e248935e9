// Which ids of a row can be kept by its filters: those in the first bins. Bins are an eighth of a
// nat wide; the last takes the rest.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/sample_block.cuh"

namespace tgi::cuda {

inline constexpr float kBinsPerUnit = 8.0F;

// The bin of a distance from the best, which is >= 0.
__device__ __forceinline__ uint32_t bin_of(float distance) {
  return static_cast<uint32_t>(fminf(fmaxf(distance, 0.0F) * kBinsPerUnit, kNumBins - 1));
}

// How far the probability of a value is from what is typical.
__device__ __forceinline__ float typicality(float value,
                                            float highest,
                                            double log_total,
                                            double entropy) {
  const double surprise = log_total - static_cast<double>(value - highest);
  return static_cast<float>(fabs(surprise - entropy));
}

// What the first filter orders by, best lowest.
__device__ __forceinline__ uint32_t bin_of_value(const RowState& state,
                                                 FirstFilter first,
                                                 float value) {
  return bin_of(first == FirstFilter::kTypical
                    ? typicality(value, state.highest, state.log_total, state.entropy)
                    : state.highest - value);
}

// Whether the logits of a row, as they came, are a distribution.
__device__ __forceinline__ bool is_finite(const RowState& state) {
  return fabsf(state.raw_highest) < INFINITY;
}

// The log-probability of a logit as it came, as Distribution in engine/sample/sampler.cc has it.
__device__ __forceinline__ float raw_logprob(const RowState& state, float x) {
  if (!is_finite(state)) return __uint_as_float(0x7fffffffU);
  if (!(x > -INFINITY)) return -INFINITY;
  const double distance = x == state.raw_highest
                              ? 0.0
                              : static_cast<double>(x) - static_cast<double>(state.raw_highest);
  return static_cast<float>(distance - state.raw_log_total);
}

// What the row's filters and its alternatives still have to do once `state` is known.
struct OpenWork {
  bool filters;
  bool tops;
};
__device__ __forceinline__ OpenWork open_work(const RowPlan& plan, const RowState& state) {
  if (!is_finite(state)) return {false, false};
  return {plan.first != FirstFilter::kNone && state.highest > -INFINITY, plan.num_tops > 0};
}

// Writes what was drawn where the host and the next step look for it. One thread calls this.
__device__ __forceinline__ void record_draw(const SampleTask& task,
                                            const RowPlan& plan,
                                            const RowState& state,
                                            unsigned index,
                                            int32_t id) {
  SampledRow& out = task.launch.out[index];
  out.id = id;
  out.logprob = raw_logprob(state, task.launch.logits[index * task.launch.stride + id]);
  if (!plan.row.is_verified) record_token(task.launch.slots, plan.row.slot, id);
}

}  // namespace tgi::cuda
