// Barriers, shuffles, votes, reductions over a warp, and atomics.
#pragma once

#include <thread>

#include "emulation/threads.h"

inline void __syncthreads() {
  tgi::cuda_emulation::block_barrier(tgi::cuda_emulation::Barrier::kSync, 0);
}
inline int __syncthreads_or(int predicate) {
  return tgi::cuda_emulation::block_barrier(tgi::cuda_emulation::Barrier::kOr, predicate);
}
inline int __syncthreads_and(int predicate) {
  return tgi::cuda_emulation::block_barrier(tgi::cuda_emulation::Barrier::kAnd, predicate);
}
inline int __syncthreads_count(int predicate) {
  return tgi::cuda_emulation::block_barrier(tgi::cuda_emulation::Barrier::kCount, predicate);
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  tgi::cuda_emulation::exchange(tgi::cuda_emulation::Collective::kSyncWarp, mask, char{0});
}

namespace tgi::cuda_emulation {
// The value of lane `from` where that is a lane of this segment of `width` lanes, else one's own.
template <typename T>
T shuffled(unsigned mask, const T& value, int from, int first, int last) {
  const T* values = exchange(Collective::kShuffle, mask, value);
  if (from < first || from > last) return value;
  if ((lanes_present() >> from & 1u) == 0) {
    fail_in_kernel("a shuffle reads lane %d, which the warp does not have", from);
  }
  return values[from];
}
template <typename T>
T reduced(unsigned mask, T value, T (*combine)(T, T)) {
  const T* values = exchange(Collective::kReduce, mask, value);
  const unsigned present = lanes_present();
  T out = values[0];  // lane 0 is there in every warp
  for (int i = 1; i < warpSize; ++i) {
    if ((present >> i & 1u) != 0) out = combine(out, values[i]);
  }
  return out;
}
inline unsigned voted(unsigned mask, int predicate) {
  const char* votes = exchange(Collective::kVote, mask, static_cast<char>(predicate != 0));
  unsigned out = 0;
  for (int i = 0; i < warpSize; ++i) out |= (votes[i] & 1u) << i;
  return out & lanes_present();
}
}  // namespace tgi::cuda_emulation

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
  const int first = static_cast<int>(tgi::cuda_emulation::lane_index()) & ~(width - 1);
  return tgi::cuda_emulation::shuffled(mask, value, first + (lane & (width - 1)), 0, 31);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
  const int me = static_cast<int>(tgi::cuda_emulation::lane_index());
  // The hardware lets a lane read segments before its own, not after.
  return tgi::cuda_emulation::shuffled(mask, value, me ^ lanes, 0, me | (width - 1));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = warpSize) {
  const int me = static_cast<int>(tgi::cuda_emulation::lane_index());
  return tgi::cuda_emulation::shuffled(mask, value, me + static_cast<int>(distance), 0,
                                       me | (width - 1));
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = warpSize) {
  const int me = static_cast<int>(tgi::cuda_emulation::lane_index());
  return tgi::cuda_emulation::shuffled(mask, value, me - static_cast<int>(distance),
                                       me & ~(width - 1), 31);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return tgi::cuda_emulation::voted(mask, predicate);
}
inline int __any_sync(unsigned mask, int predicate) {
  return tgi::cuda_emulation::voted(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return tgi::cuda_emulation::voted(mask, predicate) == tgi::cuda_emulation::lanes_present();
}

#define TGI_EMULATED_REDUCE(type, name, expression)                                               \
  inline type __reduce_##name##_sync(unsigned mask, type value) {                                 \
    return tgi::cuda_emulation::reduced<type>(mask, value,                                        \
                                              [](type a, type b) -> type { return expression; }); \
  }
TGI_EMULATED_REDUCE(unsigned, add, a + b)
TGI_EMULATED_REDUCE(unsigned, min, a < b ? a : b)
TGI_EMULATED_REDUCE(unsigned, max, a < b ? b : a)
TGI_EMULATED_REDUCE(unsigned, and, a& b)
TGI_EMULATED_REDUCE(unsigned, or, a | b)
TGI_EMULATED_REDUCE(unsigned, xor, a ^ b)
TGI_EMULATED_REDUCE(int, add, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
TGI_EMULATED_REDUCE(int, min, a < b ? a : b)
TGI_EMULATED_REDUCE(int, max, a < b ? b : a)
#undef TGI_EMULATED_REDUCE

// Atomic between host threads too: two emulated GPUs may share memory.
namespace tgi::cuda_emulation {
template <typename T, typename Change>
T atomically(T* at, Change change) {
  T old;
  __atomic_load(at, &old, __ATOMIC_SEQ_CST);
  T next = change(old);
  while (!__atomic_compare_exchange(at, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    next = change(old);
  }
  return old;
}
}  // namespace tgi::cuda_emulation

#define TGI_EMULATED_ATOMIC(type, name, expression)                                                \
  inline type atomic##name(type* at, type value) {                                                 \
    return tgi::cuda_emulation::atomically(                                                        \
        at, [value]([[maybe_unused]] type old) -> type { return static_cast<type>(expression); }); \
  }
#define TGI_EMULATED_ATOMICS(type)                                    \
  TGI_EMULATED_ATOMIC(type, Max, old < value ? value : old)           \
  TGI_EMULATED_ATOMIC(type, Min, value < old ? value : old)           \
  TGI_EMULATED_ATOMIC(type, Exch, value)                              \
  TGI_EMULATED_ATOMIC(type, Or, old | value)                          \
  TGI_EMULATED_ATOMIC(type, And, old& value)                          \
  TGI_EMULATED_ATOMIC(type, Xor, old ^ value)                         \
  inline type atomicCAS(type* at, type expected, type value) {        \
    return tgi::cuda_emulation::atomically(                           \
        at, [&](type old) { return old == expected ? value : old; }); \
  }
TGI_EMULATED_ATOMICS(int)
TGI_EMULATED_ATOMICS(unsigned)
TGI_EMULATED_ATOMICS(unsigned long long)
inline unsigned short atomicCAS(unsigned short* at, unsigned short expected, unsigned short value) {
  return tgi::cuda_emulation::atomically(
      at, [&](unsigned short old) { return old == expected ? value : old; });
}
TGI_EMULATED_ATOMIC(int, Add, static_cast<unsigned>(old) + static_cast<unsigned>(value))
TGI_EMULATED_ATOMIC(int, Sub, static_cast<unsigned>(old) - static_cast<unsigned>(value))
TGI_EMULATED_ATOMIC(unsigned, Add, old + value)
TGI_EMULATED_ATOMIC(unsigned, Sub, old - value)
TGI_EMULATED_ATOMIC(unsigned, Inc, old >= value ? 0 : old + 1)
TGI_EMULATED_ATOMIC(unsigned, Dec, old == 0 || old > value ? value : old - 1)
TGI_EMULATED_ATOMIC(unsigned long long, Add, old + value)
TGI_EMULATED_ATOMIC(float, Add, old + value)
TGI_EMULATED_ATOMIC(float, Exch, value)
TGI_EMULATED_ATOMIC(double, Add, old + value)
#undef TGI_EMULATED_ATOMICS
#undef TGI_EMULATED_ATOMIC

inline void __threadfence() {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_system() {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
inline void __nanosleep(unsigned) {
  std::this_thread::yield();
  tgi::cuda_emulation::yield_thread();
}
