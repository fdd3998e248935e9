#include "tests/cuda_emulation/block_runner.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "tests/cuda_emulation/runtime_state.h"
#include "tests/cuda_emulation/sanitizers.h"

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local uint3 blockDim{};
constinit thread_local uint3 gridDim{};

namespace tgi::cuda_emulation {
namespace {

constexpr int kUnwritten = 0xff;  // the byte of which every float format makes a NaN
// The block's memory starts 16 bytes behind such a border: no kernel may count on more.
constexpr size_t kSharedBorder = 1024;
constexpr size_t kSharedGuardBytes = 256;

constinit thread_local BlockRunner* running_runner = nullptr;

std::atomic<uint64_t> num_launches{0}, num_blocks{0}, num_threads{0}, num_switches{0};

uint32_t low_bits(unsigned count) {
  return count >= 32 ? ~0u : (1u << count) - 1u;
}

}  // namespace

Counters counters() {
  const Lock lock(runtime().mutex);
  return {num_launches, num_blocks, num_threads, num_switches, runtime().num_pageable_copies};
}

Permutation::Permutation(Order order, uint64_t random, uint64_t count) : count_(count) {
  if (order == Order::kForward || count < 2) return;
  if (order == Order::kBackward) {
    factor_ = count - 1;
    shift_ = count - 1;
    return;
  }
  shift_ = random % count;
  factor_ = 1 + (random >> 32) % (count - 1);
  while (std::gcd(factor_, count) != 1) factor_ = factor_ % (count - 1) + 1;
}

BlockRunner& BlockRunner::of_this_thread() {
  thread_local std::unique_ptr<BlockRunner> runner;
  if (!runner) runner = std::make_unique<BlockRunner>();
  return *runner;
}

BlockRunner* BlockRunner::running() {
  return running_runner;
}

BlockRunner::BlockRunner()
    : warps_(kMaxThreads / 32),
      shared_storage_(kMaxSharedBytes + 2 * kSharedBorder + kSharedGuardBytes) {
  const auto address = reinterpret_cast<uintptr_t>(shared_storage_.data());
  shared_ = shared_storage_.data() + (kSharedBorder - address % kSharedBorder) + 16;
}

BlockRunner::~BlockRunner() {
#if defined(TGI_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(shared_storage_.data(), shared_storage_.size());
#endif
  // All of them stand in thread_main, where nothing has to be destroyed.
  for (Thread& thread : threads_) free_fiber(thread.fiber);
}

uint64_t BlockRunner::random() {  // splitmix64
  uint64_t x = random_state_ += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

void BlockRunner::run(const KernelLaunch& launch, std::function<void()> wait_for_previous) {
  const uint64_t threads = uint64_t{launch.block.x} * launch.block.y * launch.block.z;
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  launch_ = &launch;
  running_runner = this;
  schedule_ = schedule();
  random_state_ = schedule_.seed * 0x2545f4914f6cdd1du + ++num_launches_;
  adopt_host_thread(host_);
  gridDim = launch.grid;
  blockDim = launch.block;
  prepare_threads(launch.block);
  shared_bytes_ = launch.shared_bytes;
  num_switches_ = 0;
  waited_for_previous_ = false;
  wait_for_previous_ = std::move(wait_for_previous);
  const Permutation order(schedule_.order, random(), blocks);
  for (uint64_t i = 0; i < blocks; ++i) run_block(launch, order[i]);
  if (launch.overlaps_previous && !waited_for_previous_) {
    fail_in_kernel(
        "launched to overlap with the kernel before it, but no thread calls "
        "wait_for_previous_kernel");
  }
  running_runner = nullptr;
  launch_ = nullptr;
  num_launches += 1;
  num_blocks += blocks;
  num_threads += blocks * threads;
  num_switches += num_switches_;
}

void BlockRunner::prepare_threads(const uint3& block) {
  num_threads_ = block.x * block.y * block.z;
  while (threads_.size() < num_threads_) {
    Thread& thread = threads_.emplace_back();
    const auto i = static_cast<unsigned>(threads_.size() - 1);
    thread.warp = i / 32;
    thread.lane = i % 32;
    thread.fiber = make_fiber(thread_main, i);
  }
  unsigned i = 0;
  for (unsigned z = 0; z < block.z; ++z) {
    for (unsigned y = 0; y < block.y; ++y) {
      for (unsigned x = 0; x < block.x; ++x) threads_[i++].index = {x, y, z};
    }
  }
}

void BlockRunner::run_block(const KernelLaunch& launch, uint64_t linear) {
  blockIdx.x = static_cast<unsigned>(linear % launch.grid.x);
  blockIdx.y = static_cast<unsigned>(linear / launch.grid.x % launch.grid.y);
  blockIdx.z = static_cast<unsigned>(linear / launch.grid.x / launch.grid.y);
  std::memset(shared_, kUnwritten, shared_bytes_ + kSharedGuardBytes);
#if defined(TGI_ADDRESS_SANITIZER)
  ASAN_POISON_MEMORY_REGION(shared_ + shared_bytes_, kSharedGuardBytes);
#endif
  const unsigned num_warps = (num_threads_ + 31) / 32;
  for (unsigned i = 0; i < num_warps; ++i) {
    Warp& warp = warps_[i];
    warp.present = low_bits(num_threads_ - i * 32);
    warp.arrived = warp.at_barrier = warp.at_wait = 0;
    start_pass(warp);
    warp.ready = warp.present;
  }
  runnable_warps_ = low_bits(num_warps);
  barrier_arrived_ = barrier_votes_ = 0;
  num_done_ = 0;
  run_threads();
  if (num_done_ != num_threads_ && wait_for_previous_) {
    end_wait_for_previous();
    if (runnable_warps_ != 0) run_threads();
  }
  if (num_done_ != num_threads_) fail_deadlock();
#if defined(TGI_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(shared_ + shared_bytes_, kSharedGuardBytes);
#endif
  for (size_t i = 0; i < kSharedGuardBytes; ++i) {
    if (shared_[shared_bytes_ + i] == std::byte{kUnwritten}) continue;
    fail_in_kernel("writes byte %zu of its dynamic shared memory, which has %zu", shared_bytes_ + i,
                   shared_bytes_);
  }
}

// Until none can go on.
void BlockRunner::run_threads() {
  choose_warp();
  current_ = next_thread();
  threadIdx = current_->index;
  ++num_switches_;
  switch_fiber(host_, current_->fiber);
}

void BlockRunner::wait_for_previous() {
  waited_for_previous_ = true;
  if (!wait_for_previous_) return;
  Warp& warp = this->warp();
  const uint32_t bit = 1u << current_->lane;
  warp.at_wait |= bit;
  warp.ready &= ~bit;
  leave();
}

void BlockRunner::end_wait_for_previous() {
  wait_for_previous_();
  wait_for_previous_ = nullptr;
  const unsigned num_warps = (num_threads_ + 31) / 32;
  for (unsigned i = 0; i < num_warps; ++i) {
    Warp& warp = warps_[i];
    if (warp.at_wait == 0) continue;
    warp.ready |= std::exchange(warp.at_wait, 0u);
    runnable_warps_ |= 1u << i;
    start_pass(warp);
  }
}

void BlockRunner::thread_main() {
  for (;;) {
    BlockRunner& runner = *running_runner;
    Thread& me = *runner.current_;
    runner.launch_->body();
    me.copies.clear();
    me.num_groups = 0;
    runner.warp().ready &= ~(1u << me.lane);
    ++runner.num_done_;
    runner.leave();
  }
}

void BlockRunner::start_pass(Warp& warp) {
  warp.cursor = 0;
  if (schedule_.order == Order::kForward) {
    warp.factor = 1;
    warp.shift = 0;
  } else if (schedule_.order == Order::kBackward) {
    warp.factor = warp.shift = 31;
  } else {
    const uint64_t bits = random();
    warp.factor = (static_cast<uint32_t>(bits) & 31u) | 1u;
    warp.shift = static_cast<uint32_t>(bits >> 8) & 31u;
  }
}

// REQUIRES: some warp can run.
void BlockRunner::choose_warp() {
  switch (schedule_.order) {
    case Order::kForward:
      warp_now_ = static_cast<unsigned>(std::countr_zero(runnable_warps_));
      break;
    case Order::kBackward:
      warp_now_ = 31u - static_cast<unsigned>(std::countl_zero(runnable_warps_));
      break;
    case Order::kShuffled:
      const auto turn = static_cast<unsigned>(random() & 31u);
      const uint32_t turned = std::rotr(runnable_warps_, static_cast<int>(turn));
      warp_now_ = (static_cast<unsigned>(std::countr_zero(turned)) + turn) & 31u;
      break;
  }
}

// Null when no thread can run on.
BlockRunner::Thread* BlockRunner::next_thread() {
  for (;;) {
    Warp& warp = warps_[warp_now_];
    while (warp.ready != 0) {
      while (warp.cursor < 32) {
        const uint32_t lane = (warp.cursor++ * warp.factor + warp.shift) & 31u;
        if ((warp.ready >> lane & 1u) != 0) return &threads_[warp_now_ * 32 + lane];
      }
      start_pass(warp);
    }
    // The other lanes are elsewhere, and not where they will come from.
    if (warp.arrived != 0 && warp.at_wait == 0) fail_deadlock();
    runnable_warps_ &= ~(1u << warp_now_);
    if (runnable_warps_ == 0) return nullptr;
    choose_warp();
  }
}

// The current thread stops here until it has its turn again.
void BlockRunner::leave() {
  Thread& me = *current_;
  Thread* next = next_thread();
  if (next == &me) return;
  current_ = next;
  ++num_switches_;
  if (next == nullptr) {
    switch_fiber(me.fiber, host_);
  } else {
    threadIdx = next->index;
    switch_fiber(me.fiber, next->fiber);
  }
}

std::byte* BlockRunner::begin_collective(Collective kind, unsigned mask) {
  Warp& warp = this->warp();
  if (mask != ~0u && mask != warp.present) {
    fail_in_kernel("a warp collective with the mask %08x; the lanes of this warp are %08x", mask,
                   warp.present);
  }
  if ((kind == Collective::kLdmatrix || kind == Collective::kMma) && warp.present != ~0u) {
    fail_in_kernel("ldmatrix or mma in a warp that has not 32 lanes (%08x)", warp.present);
  }
  if (warp.arrived != 0 && warp.kind != kind) fail_deadlock();
  warp.kind = kind;
  return warp.operands[warp.generation & 1u];
}

void BlockRunner::finish_collective(void (*complete)(std::byte*)) {
  Warp& warp = this->warp();
  const uint32_t bit = 1u << current_->lane;
  warp.arrived |= bit;
  warp.ready &= ~bit;
  if (warp.arrived == warp.present) {
    if (complete != nullptr) complete(warp.operands[warp.generation & 1u]);
    ++warp.generation;
    warp.arrived = 0;
    warp.ready = warp.present;
    start_pass(warp);
    // Now and then another warp goes on first.
    if (schedule_.order == Order::kShuffled && (random() & 7u) == 0) choose_warp();
  }
  leave();
}

int BlockRunner::block_barrier(Barrier kind, int predicate) {
  Warp& warp = this->warp();
  if (barrier_arrived_ != 0 && barrier_kind_ != kind) {
    fail_in_kernel("threads of the block are at two kinds of __syncthreads at a time");
  }
  barrier_kind_ = kind;
  const uint32_t bit = 1u << current_->lane;
  warp.at_barrier |= bit;
  warp.ready &= ~bit;
  const uint32_t parity = barrier_generation_ & 1u;
  barrier_votes_ += predicate != 0 ? 1u : 0u;
  if (++barrier_arrived_ == num_threads_) {
    int& result = barrier_result_[parity];
    result = static_cast<int>(barrier_votes_);
    if (kind == Barrier::kOr) result = barrier_votes_ != 0;
    if (kind == Barrier::kAnd) result = barrier_votes_ == num_threads_;
    ++barrier_generation_;
    barrier_arrived_ = barrier_votes_ = 0;
    const unsigned num_warps = (num_threads_ + 31) / 32;
    for (unsigned i = 0; i < num_warps; ++i) {
      warps_[i].at_barrier = 0;
      warps_[i].ready = warps_[i].present;
      start_pass(warps_[i]);
    }
    runnable_warps_ = low_bits(num_warps);
    choose_warp();
  }
  leave();
  return barrier_result_[parity];
}

// The warps in turns, whatever the order is: each has to come some time.
void BlockRunner::yield_thread() {
  const unsigned next = (warp_now_ + 1) & 31u;
  const uint32_t turned = std::rotr(runnable_warps_, static_cast<int>(next));
  warp_now_ = (static_cast<unsigned>(std::countr_zero(turned)) + next) & 31u;
  leave();
}

}  // namespace tgi::cuda_emulation
