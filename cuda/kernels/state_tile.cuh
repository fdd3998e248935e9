// What the recurrent kernels share: a block holds the states of some channels of one sequence in
// registers over all its tokens of the step, reads them once before and writes them once after.
//
// kLanes neighbouring threads share a channel, each with kVectors runs of four of its numbers, so
// that a warp reads and writes whole lines. Inputs that all channels of a block need come in chunks
// of kChunk tokens through shared memory, as floats; those of the next chunk are on their way in
// registers while this one is worked on. With 8 lanes and 16 numbers each a sequence of a model
// with 80 heads of 64 channels and 128 numbers is dealt to 320 blocks.
#pragma once

#include <cstdint>

#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/reduce.cuh"
#include "cuda/kernels/softplus.cuh"
#include "cuda/kernels/state.h"
#include "cuda/kernels/types.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {

inline constexpr int kStateThreads = 128;
inline constexpr int kStateWarps = kStateThreads / 32;
inline constexpr float kExpToExp2 = 1.44269504F;

// How a channel's numbers are dealt to threads.
template <int kLanesOfChannel, int kVectorsOfLane, int kMostTokens = 16>
struct StateShape {
  static constexpr int kLanes = kLanesOfChannel;
  static constexpr int kVectors = kVectorsOfLane;
  static constexpr int kNumbers = 4 * kLanes * kVectors;  // the most that fit; zeros past the last
  static constexpr int kChannels = kStateThreads / kLanes;  // of a block
  static constexpr int kFitting = kNumbers <= 64 ? 16 : kNumbers <= 256 ? 8 : 4;
  static constexpr int kChunk = kFitting < kMostTokens ? kFitting : kMostTokens;  // tokens
  static_assert(kChunk % kStateWarps == 0);
};

// Calls use(StateShape<...>{}) with the smallest that fits. REQUIRES: at most kMaxStateSize.
template <typename Use>
void with_state_shape(int32_t state_size, Use use) {
  if (state_size <= 16) return use(StateShape<4, 1>{});
  if (state_size <= 64) return use(StateShape<8, 2>{});
  if (state_size <= 128) return use(StateShape<8, 4>{});
  if (state_size <= 256) return use(StateShape<16, 4>{});
  use(StateShape<32, 4>{});
}

// The same where three rows of such numbers are read of a token, which take more shared memory.
// REQUIRES: at most kMaxDecayingNumbers.
template <typename Use>
void with_wide_state_shape(int32_t state_size, Use use) {
  if (state_size <= 16) return use(StateShape<4, 1>{});
  if (state_size <= 64) return use(StateShape<8, 2, 8>{});
  if (state_size <= 128) return use(StateShape<8, 4, 8>{});
  use(StateShape<16, 4, 4>{});
}

// The same column, or run of columns, of rows that follow each other.
struct ColumnsOfRows {
  const void* data = nullptr;
  int64_t stride = 0;

  template <typename T>
  __device__ __forceinline__ const T* at(int64_t row, int64_t column) const {
    return static_cast<const T*>(data) + row * stride + column;
  }
};

inline ColumnsOfRows columns_of(const Tensor& tensor) {
  return {.data = tensor.data, .stride = tensor.stride};
}

// Where in the states and the step a block is, and a thread in the block.
struct StatePlace {
  int32_t head;
  int32_t first_channel;  // of the head
  int32_t num_channels;   // of the block, up to kChannels
  int lane;               // of the threads of a channel
  int channel;            // of the block's
  SequenceRows sequence;

  __device__ __forceinline__ bool is_there() const { return channel < num_channels; }
};

// Blocks (heads * tiles of channels, sequences).
template <typename Shape>
__device__ __forceinline__ StatePlace state_place(const StateStep& step, int32_t head_dim) {
  const int32_t tiles = (head_dim + Shape::kChannels - 1) / Shape::kChannels;
  const auto block = static_cast<int32_t>(blockIdx.x);
  StatePlace out;
  out.head = block / tiles;
  out.first_channel = block % tiles * Shape::kChannels;
  out.num_channels = min(Shape::kChannels, head_dim - out.first_channel);
  out.lane = static_cast<int>(threadIdx.x) % Shape::kLanes;
  out.channel = static_cast<int>(threadIdx.x) / Shape::kLanes;
  out.sequence = step.sequences[blockIdx.y];
  return out;
}

template <typename Shape>
LaunchShape state_launch(int32_t num_heads, int32_t head_dim, int32_t num_sequences) {
  const int32_t tiles = (head_dim + Shape::kChannels - 1) / Shape::kChannels;
  return {
      .grid = dim3(static_cast<unsigned>(num_heads * tiles), static_cast<unsigned>(num_sequences)),
      .block = dim3(kStateThreads),
      .shared_bytes = 0,
      .overlaps_previous = true};
}

// The numbers of a thread's channel that it holds.
template <typename Shape>
struct StateNumbers {
  float at[4 * Shape::kVectors];

  // `states`: of the step's slots. Zeros where the sequence begins, and past the last number.
  __device__ __forceinline__ void read(const StateStep& step,
                                       const StatePlace& place,
                                       int32_t head_dim,
                                       int32_t state_size) {
    const bool begins = place.sequence.context_len == place.sequence.num_rows;
    const float* const from = address(step, place, head_dim, state_size);
#pragma unroll
    for (int i = 0; i < Shape::kVectors; ++i) {
      const int first = first_number(place.lane, i);
      Vector<float, 4> four = {};
      if (!begins && place.is_there() && first < state_size) four = load<float, 4>(from + first);
#pragma unroll
      for (int j = 0; j < 4; ++j) at[4 * i + j] = four.at[j];
    }
  }

  __device__ __forceinline__ void write(const StateStep& step,
                                        const StatePlace& place,
                                        int32_t head_dim,
                                        int32_t state_size) const {
    if (place.sequence.slot >= step.num_slots || !place.is_there()) return;
    float* const to = address(step, place, head_dim, state_size);
#pragma unroll
    for (int i = 0; i < Shape::kVectors; ++i) {
      const int first = first_number(place.lane, i);
      if (first >= state_size) continue;
      store(to + first, Vector<float, 4>{{at[4 * i], at[4 * i + 1], at[4 * i + 2], at[4 * i + 3]}});
    }
  }

  static __device__ __forceinline__ int first_number(int lane, int vector) {
    return 4 * (vector * Shape::kLanes + lane);
  }

 private:
  static __device__ __forceinline__ float* address(const StateStep& step,
                                                   const StatePlace& place,
                                                   int32_t head_dim,
                                                   int32_t state_size) {
    const int64_t channel = int64_t{place.head} * head_dim + place.first_channel + place.channel;
    return step.states + place.sequence.slot * step.slot_stride +
           channel * ((state_size + 3) / 4 * 4);
  }
};

// The sum over the threads of a channel, which all of them get.
template <typename Shape>
__device__ __forceinline__ float channel_sum(float x) {
#pragma unroll
  for (int distance = Shape::kLanes / 2; distance > 0; distance /= 2) {
    x += __shfl_xor_sync(kAllLanes, x, distance);
  }
  return x;
}

// What all channels of a block read of a token: a row of as many numbers as a state has. On its way
// a warp has every kStateWarps-th token of the chunk.
template <typename T, typename Shape>
struct NumbersOnTheWay {
  static constexpr int kTokens = Shape::kChunk / kStateWarps;
  static constexpr int kPasses = (Shape::kNumbers + 31) / 32;
  T values[kTokens][kPasses];

  __device__ __forceinline__ void load(
      const ColumnsOfRows& from, int64_t first_row, int64_t column, int count, int32_t state_size) {
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
#pragma unroll
      for (int j = 0; j < kPasses; ++j) {
        const bool valid = token(i) < count && number(j) < state_size;
        values[i][j] =
            valid ? *from.at<T>(first_row + token(i), column + number(j)) : from_float<T>(0.0F);
      }
    }
  }
  // change(number, value): what becomes of it.
  template <typename Change>
  __device__ __forceinline__ void store(Vector<float, 4> (&to)[Shape::kChunk][Shape::kNumbers / 4],
                                        Change change) const {
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
#pragma unroll
      for (int j = 0; j < kPasses; ++j) {
        if (number(j) >= Shape::kNumbers) continue;
        to[token(i)][number(j) / 4].at[number(j) % 4] = change(number(j), to_float(values[i][j]));
      }
    }
  }
  __device__ __forceinline__ void store(
      Vector<float, 4> (&to)[Shape::kChunk][Shape::kNumbers / 4]) const {
    store(to, [](int, float x) { return x; });
  }

  static __device__ __forceinline__ int token(int i) {
    return static_cast<int>(threadIdx.x) / 32 + i * kStateWarps;
  }
  static __device__ __forceinline__ int number(int j) {
    return static_cast<int>(threadIdx.x) % 32 + 32 * j;
  }
};

// What each channel of a block reads of a token.
template <typename T, typename Shape>
struct ChannelsOnTheWay {
  static constexpr int kCount = Shape::kChunk * Shape::kChannels;
  static constexpr int kPasses = (kCount + kStateThreads - 1) / kStateThreads;
  T values[kPasses];

  __device__ __forceinline__ void load(
      const ColumnsOfRows& from, int64_t first_row, int64_t column, int count, int num_channels) {
#pragma unroll
    for (int i = 0; i < kPasses; ++i) {
      const bool valid = token(i) < count && channel() < num_channels;
      values[i] =
          valid ? *from.at<T>(first_row + token(i), column + channel()) : from_float<T>(0.0F);
    }
  }
  template <typename Change>
  __device__ __forceinline__ void store(float (*to)[Shape::kChannels], Change change) const {
#pragma unroll
    for (int i = 0; i < kPasses; ++i) {
      if (token(i) < Shape::kChunk) to[token(i)][channel()] = change(to_float(values[i]));
    }
  }
  __device__ __forceinline__ void store(float (*to)[Shape::kChannels]) const {
    store(to, [](float x) { return x; });
  }

 private:
  static __device__ __forceinline__ int token(int i) {
    return (static_cast<int>(threadIdx.x) + i * kStateThreads) / Shape::kChannels;
  }
  static __device__ __forceinline__ int channel() {
    return static_cast<int>(threadIdx.x) % Shape::kChannels;
  }
};

// Goes through the tokens of the block's sequence: inputs.load(first row, tokens) starts the copy
// of a chunk, inputs.store(stage) puts it into shared memory, run(stage, token of the chunk, row)
// works on a token.
template <typename Shape, typename Inputs, typename Run>
__device__ __forceinline__ void for_state_tokens(const SequenceRows& sequence,
                                                 Inputs& inputs,
                                                 Run run) {
  const auto count_from = [&](int32_t begin) {
    return min(Shape::kChunk, sequence.num_rows - begin);
  };
  inputs.load(sequence.first_row, count_from(0));
  inputs.store(0);
  __syncthreads();
  int stage = 0;
  for (int32_t begin = 0; begin < sequence.num_rows; begin += Shape::kChunk) {
    const int32_t next = begin + Shape::kChunk;
    if (next < sequence.num_rows) inputs.load(sequence.first_row + next, count_from(next));
    const int count = count_from(begin);
    for (int t = 0; t < count; ++t) run(stage, t, sequence.first_row + begin + t);
    stage ^= 1;
    if (next < sequence.num_rows) inputs.store(stage);
    __syncthreads();
  }
}

// The four sums of a thread, added in one order.
__device__ __forceinline__ float sum_of_four(const float (&sums)[4]) {
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace tgi::cuda
