// The draw: an exponential race, whose noise depends on seed, sequence, position and id alone. See
// SamplerMath::draw in engine/sample/sampler_math.h.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/sample_block.cuh"
#include "cuda/kernels/sample_row.cuh"
#include "engine/sample/philox.h"

namespace tgi::cuda {

struct NoiseKey {
  uint64_t seed;
  uint32_t position;
  uint32_t sequence_index;
};

__device__ __forceinline__ NoiseKey noise_key(const RowPlan& plan) {
  return {plan.sampling.seed, static_cast<uint32_t>(plan.row.position),
          plan.sampling.sequence_index};
}

// The bits of the ids that are `id` but for their sixteen's place in its sixty-four.
__device__ __forceinline__ std::array<uint32_t, 4> noise_block(const NoiseKey& key, int32_t id) {
  const auto i = static_cast<uint32_t>(id);
  return philox4x32_10({i / 64 * 16 + i % 16, key.position, key.sequence_index, 0},
                       {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
}

// The bits of one id.
__device__ __forceinline__ uint32_t noise_bits(const NoiseKey& key, int32_t id) {
  const std::array<uint32_t, 4> words = noise_block(key, id);
  const int32_t which = id / 16 % 4;
  return which < 2 ? (which == 0 ? words[0] : words[1]) : (which == 2 ? words[2] : words[3]);
}

// Whose bits an id is drawn by.
struct NoiseSource {
  NoiseKey key;
  const int32_t* draw_ids;  // (optional) SampleLaunch

  __device__ __forceinline__ uint32_t bits(int32_t id) const {
    return noise_bits(key, draw_ids == nullptr ? id : draw_ids[id]);
  }
};

__device__ __forceinline__ NoiseSource noise_source(const SampleLaunch& launch,
                                                    const RowPlan& plan) {
  return {noise_key(plan), launch.draw_ids};
}

// -log(1 - u), u = (bits + 1/2) / 2^32, to a few units in the last place wherever u is.
__device__ __forceinline__ float exponential(uint32_t bits) {
  if (bits < 0x40000000U) return -log1pf(-(static_cast<float>(bits) + 0.5F) * 0x1p-32F);
  return -logf((static_cast<float>(~bits) + 0.5F) * 0x1p-32F);
}

// `distance`: from the shift of the race, <= 0. 0: never wins.
__device__ __forceinline__ float speed_of(float distance, uint32_t bits) {
  return expf(distance) / exponential(bits);
}

// The thread's winner among its ids of a chunk whose highest is `top`, above -infinity.
__device__ __forceinline__ PackedBest race_by_others(const float (&t)[kIdsPerThread],
                                                     int32_t chunk,
                                                     PackedBest top,
                                                     const NoiseSource& noise) {
  PackedBest best = 0;
#pragma unroll
  for (int i = 0; i < kIdsPerThread; ++i) {
    if (!(t[i] > -INFINITY)) continue;  // also what is past the end of the row
    const int32_t id = id_at(first_id(chunk), i);
    const float speed = speed_of(t[i] - value_of(top), noise.bits(id));
    if (speed > 0.0F) best = Highest()(best, pack_best(speed, id));
  }
  return best;
}

// The same where each id has its own bits: sixteen ids to four blocks.
//
// Few ids need their logarithm: as -log(1 - u) >= u, an id's speed is at most its weight / u, and
// the speed of the highest id, which each thread works out, is there to be beaten.
__device__ __forceinline__ PackedBest race_chunk(const float (&t)[kIdsPerThread],
                                                 int32_t chunk,
                                                 PackedBest top,
                                                 const NoiseSource& noise) {
  if (noise.draw_ids != nullptr) return race_by_others(t, chunk, top, noise);
  const NoiseKey& key = noise.key;
  const float highest = value_of(top);
  const int32_t first = first_id(chunk);
  float to_beat = 1.0F / exponential(noise_bits(key, id_of(top)));
  PackedBest best = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::array<uint32_t, 4> bits = noise_block(key, first + k);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float distance = t[4 * j + k] - highest;
      const float bound = __expf(distance) * (1.00001F * 0x1p32F);
      if (bound < to_beat * static_cast<float>(bits[j])) continue;
      const float speed = speed_of(distance, bits[j]);
      if (!(speed > 0.0F)) continue;
      best = Highest()(best, pack_best(speed, first + 16 * j + k));
      to_beat = fmaxf(to_beat, speed);
    }
  }
  return best;
}

}  // namespace tgi::cuda
