// The logits of a row as its next token is drawn from them: watermark, penalties, bias, mask,
// temperature, in that order and with the roundings of engine/sample/sampler.cc.
#pragma once

#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

#include "cuda/kernels/sample_task.cuh"
#include "cuda/kernels/types.cuh"
#include "engine/sample/watermark.h"

namespace tgi::cuda {

// Where the ids of a thread are in a chunk: element 4 * j + k is id first + 16 * j + k, j and k
// below 4. So a thread has four ids of a Philox block (engine/sample/sampler_math.h), four times,
// and eight threads in a row read 128 bytes twice.
__device__ __forceinline__ int32_t first_id(int32_t chunk) {
  const auto thread = static_cast<int32_t>(threadIdx.x);
  return chunk * kChunkIds + thread / 4 * 64 + thread % 4 * 4;
}
__device__ __forceinline__ int32_t id_at(int32_t first, int element) {
  return first + element / 4 * 16 + element % 4;
}

struct LogitSource {
  const float* logits;      // (vocab_size)
  const uint32_t* allowed;  // (optional)
  const uint16_t* counts;   // (optional) (vocab_size)
  const int32_t* drafts;    // (num_drafts) of the output, but not among `counts`
  int32_t num_drafts;
  const TokenBiasEntry* bias;
  int32_t num_bias;
  int32_t vocab_size;
  int32_t previous_id;  // -1: no watermark
  float temperature;    // 1 for greedy rows, which it does not touch
  float inverse_temperature;
  float repetition_penalty;
  float frequency_penalty;
  float presence_penalty;
  bool is_sampled;
  bool aligned;
};

// Enough for load_raw: it does not wait for what the row is for.
__device__ __forceinline__ LogitSource raw_source(const SampleTask& task, unsigned index) {
  LogitSource out{};
  out.vocab_size = task.launch.slots.vocab_size;
  out.logits = task.launch.logits + index * task.launch.stride;
  out.aligned = task.aligned;
  out.previous_id = -1;
  out.temperature = 1.0F;
  return out;
}

__device__ __forceinline__ LogitSource source_of(const SampleTask& task,
                                                 const RowPlan& plan,
                                                 unsigned index) {
  const SampleLaunch& launch = task.launch;
  LogitSource out = raw_source(task, index);
  if (!plan.draws) return out;
  const int64_t slot = plan.row.slot;
  const SlotSampling& sampling = plan.sampling;
  if (plan.row.mask >= 0) {
    out.allowed = launch.masks + static_cast<int64_t>(plan.row.mask) * ((out.vocab_size + 31) / 32);
  }
  if (sampling.has_penalties) out.counts = launch.slots.token_counts + slot * out.vocab_size;
  if (sampling.watermark) out.previous_id = launch.slots.last_tokens[slot];
  if (plan.row.num_drafts > 0) {
    out.num_drafts = plan.row.num_drafts;
    out.drafts = launch.token_ids + plan.row.row + 1 - out.num_drafts;
    if (sampling.watermark) out.previous_id = out.drafts[out.num_drafts - 1];
  }
  out.bias = launch.slots.bias + slot * launch.slots.max_bias;
  out.num_bias = sampling.num_bias;
  out.is_sampled = sampling.do_sample;
  if (sampling.do_sample) out.temperature = sampling.temperature;
  out.inverse_temperature = __frcp_rn(out.temperature);
  out.repetition_penalty = sampling.repetition_penalty;
  out.frequency_penalty = sampling.frequency_penalty;
  out.presence_penalty = sampling.presence_penalty;
  return out;
}

// Loads the logits as they came; -infinity past the end of the row.
__device__ __forceinline__ void load_raw(const LogitSource& source,
                                         int32_t chunk,
                                         float (&x)[kIdsPerThread]) {
  const int32_t first = first_id(chunk);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int32_t id = first + 16 * j;
    if (source.aligned && id + 4 <= source.vocab_size) {
      const Vector<float, 4> four = load<float, 4>(source.logits + id);
#pragma unroll
      for (int k = 0; k < 4; ++k) x[4 * j + k] = four.at[k];
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        x[4 * j + k] = id + k < source.vocab_size ? source.logits[id + k] : -INFINITY;
      }
    }
  }
}

__device__ __forceinline__ float penalise(const LogitSource& source, float x, uint32_t count) {
  if ((count & kSeenToken) == 0) return x;
  x = x < 0.0F ? __fmul_rn(x, source.repetition_penalty) : __fdiv_rn(x, source.repetition_penalty);
  const uint32_t in_output = count & kOutputCountMask;
  if (in_output == 0) return x;
  x = __fsub_rn(x, __fmul_rn(source.frequency_penalty, static_cast<float>(in_output)));
  return __fsub_rn(x, source.presence_penalty);
}

__device__ __forceinline__ uint32_t count_of(const LogitSource& source, int32_t id) {
  uint16_t count = source.counts[id];
  for (int32_t i = 0; i < source.num_drafts; ++i) {
    if (source.drafts[i] == id) count = counted_in_output(count);
  }
  return count;
}

// x / temperature, rounded as IEEE 754 says. The quotient by the inverse is set right twice; what
// may leave the range of that is divided.
__device__ __forceinline__ float divide_by_temperature(const LogitSource& source, float x) {
  const float t = source.temperature;
  const float inverse = source.inverse_temperature;
  float q = __fmul_rn(x, inverse);
  q = __fmaf_rn(__fmaf_rn(-q, t, x), inverse, q);
  q = __fmaf_rn(__fmaf_rn(-q, t, x), inverse, q);
  const float size = fabsf(q);
  const bool is_safe = size > 0x1p-60F && size < 0x1p60F && inverse > 0x1p-60F && inverse < 0x1p60F;
  return is_safe ? q : __fdiv_rn(x, t);
}

// From raw to as it is drawn from, in place; NaN stays NaN in greedy rows.
__device__ __forceinline__ void transform(const LogitSource& source,
                                          int32_t chunk,
                                          float (&x)[kIdsPerThread]) {
  const int32_t first = first_id(chunk);
  if (source.previous_id >= 0) {
#pragma unroll
    for (int i = 0; i < kIdsPerThread; ++i) {
      if (is_green(source.previous_id, id_at(first, i))) x[i] = __fadd_rn(x[i], kWatermarkDelta);
    }
  }
  if (source.counts != nullptr) {
#pragma unroll
    for (int i = 0; i < kIdsPerThread; ++i) {
      const int32_t id = id_at(first, i);
      if (id < source.vocab_size) x[i] = penalise(source, x[i], count_of(source, id));
    }
  }
  for (int32_t entry = 0; entry < source.num_bias; ++entry) {
    const TokenBiasEntry bias = source.bias[entry];
#pragma unroll
    for (int i = 0; i < kIdsPerThread; ++i) {
      if (bias.id == id_at(first, i)) x[i] = __fadd_rn(x[i], bias.bias);
    }
  }
  if (source.allowed != nullptr) {
#pragma unroll
    for (int i = 0; i < kIdsPerThread; ++i) {
      const int32_t id = id_at(first, i);
      if (id < source.vocab_size && ((source.allowed[id / 32] >> (id % 32)) & 1U) == 0) {
        x[i] = -INFINITY;
      }
    }
  }
  if (!source.is_sampled) return;
#pragma unroll
  for (int i = 0; i < kIdsPerThread; ++i) {
    const float scaled = source.temperature == 1.0F ? x[i] : divide_by_temperature(source, x[i]);
    x[i] = x[i] != x[i] ? -INFINITY : fminf(scaled, FLT_MAX);
  }
}

}  // namespace tgi::cuda
