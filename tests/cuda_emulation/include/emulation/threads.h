// What device code sees of the thread it runs as, and the meeting points that the intrinsics are
// made of. The variables are right for the emulated thread that runs now on this host thread.
#pragma once

#include <cstring>

#include "emulation/vector_types.h"

// constinit: the compiler knows that no first use has to construct them.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local uint3 blockDim;
extern constinit thread_local uint3 gridDim;
inline constexpr int warpSize = 32;

namespace tgi::cuda_emulation {

enum class Collective { kSyncWarp, kShuffle, kVote, kReduce, kLdmatrix, kMma };
enum class Barrier { kSync, kOr, kAnd, kCount };

// Where the lanes of the warp meet. begin_collective checks `mask` (all lanes that the warp has)
// and gives the place of the operands, lane after lane, which stays as it is until the caller's
// second next collective; finish_collective waits for the other lanes. The last to come calls
// `complete` first, which may replace operands by results.
std::byte* begin_collective(Collective kind, unsigned mask);
void finish_collective(void (*complete)(std::byte* operands));
inline constexpr size_t kMaxOperandBytes = 64;

unsigned lane_index();
unsigned lanes_present();

// __syncthreads and its kind: what the predicates of all threads give.
int block_barrier(Barrier kind, int predicate);

// Lets the others run: for a thread that polls memory.
void yield_thread();

// The operands of all lanes, an array of 32.
template <typename T>
const T* exchange(Collective kind,
                  unsigned mask,
                  const T& operand,
                  void (*complete)(std::byte*) = nullptr) {
  static_assert(sizeof(T) <= kMaxOperandBytes);
  std::byte* operands = begin_collective(kind, mask);
  std::memcpy(operands + lane_index() * sizeof(T), &operand, sizeof(T));
  finish_collective(complete);
  return reinterpret_cast<const T*>(operands);
}

// Says what is wrong with the kernel, where, and ends the process.
[[noreturn]] void fail_in_kernel(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace tgi::cuda_emulation
