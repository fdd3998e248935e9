// Walks over the candidates of a row and finds cuts in their order without sorting them: digit by
// digit of the key, most significant first.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/kernels/sample_block.cuh"
#include "cuda/kernels/sample_row.cuh"

namespace tgi::cuda {

// Local memory, a little code: for rows whose list overflowed.
static __device__ __attribute__((noinline)) void load_slowly(const LogitSource& source,
                                                             int32_t chunk,
                                                             bool raw,
                                                             float (&x)[kIdsPerThread]) {
  load_raw(source, chunk, x);
  if (!raw) transform(source, chunk, x);
}

// All values that may be kept: a list, or where that is too short the row itself.
struct CandidateSource {
  const LogitSource* row;
  const Candidate* list;
  int32_t count;       // of the list; -1: the row
  int32_t num_chunks;  // of the row
  bool raw;            // values as they came
};

// visit(value, id) for each, shared out among the threads.
template <typename Visit>
__device__ __forceinline__ void for_each(const CandidateSource& source, Visit visit) {
  if (source.count >= 0) {
    for (auto i = static_cast<int32_t>(threadIdx.x); i < source.count; i += kSampleThreads) {
      visit(source.list[i].value, source.list[i].id);
    }
    return;
  }
  for (int32_t chunk = 0; chunk < source.num_chunks; ++chunk) {
    float x[kIdsPerThread];
    load_slowly(*source.row, chunk, source.raw, x);
#pragma unroll 1
    for (int i = 0; i < kIdsPerThread; ++i) {
      if (x[i] > -INFINITY) visit(x[i], id_at(first_id(chunk), i));
    }
  }
}

struct Cut {
  uint32_t key;
  Wide before;  // mass of lower keys
  Wide mass;    // mass of this key
};

// The lowest key with which the mass reaches `target`, if need be the highest with a mass.
// emit(value, id, add) calls add(key, mass) for what counts; something does. All threads get the
// same.
template <typename Emit>
__device__ __forceinline__ Cut
find_cut(const CandidateSource& source, Bins& bins, Wide target, Emit emit) {
  Cut cut = {0, 0, 0};
#pragma unroll 1
  for (int shift = 24; shift >= 0; shift -= 8) {
    __syncthreads();  // the bins were read
    bins.clear();
    for_each(source, [&](float value, int32_t id) {
      emit(value, id, [&](uint32_t key, Wide mass) {
        if (((key ^ cut.key) & (shift == 24 ? 0U : ~0U << (shift + 8))) != 0) return;
        bins.add((key >> shift) & 255U, mass);
      });
    });
    __syncthreads();
    const FoundBin found = find_bin(bins.mine(), target - cut.before);
    if (shift == 24) target = min(target, found.total);
    cut.key |= static_cast<uint32_t>(found.bin) << shift;
    cut.before += found.before;
    cut.mass = found.mass;
  }
  return cut;
}

// Sums what measure(value, id) gives. All threads get it.
template <typename Measure>
__device__ __forceinline__ Wide sum_over(const CandidateSource& source, Measure measure) {
  Wide sum = 0;
  for_each(source, [&](float value, int32_t id) { sum += measure(value, id); });
  return block_combine(sum, Sum());
}

template <typename Measure>
__device__ __forceinline__ Wide highest_over(const CandidateSource& source, Measure measure) {
  Wide highest = 0;
  for_each(source, [&](float value, int32_t id) {
    highest = Highest()(highest, Wide{measure(value, id)});
  });
  return block_combine(highest, Highest());
}

}  // namespace tgi::cuda
