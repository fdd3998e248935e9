// Runs the blocks of a kernel one after the other on the calling host thread, the threads of a
// block as fibers. One runner per host thread, owned by it; what device code calls
// (include/emulation/threads.h and include/ptx_emulation.h) goes to the runner of the host thread
// it runs on.
#pragma once

#include <cuda_emulation.h>

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda_emulation/fiber.h"

namespace tgi::cuda_emulation {

inline constexpr unsigned kMaxThreads = 1024;
inline constexpr size_t kDefaultSharedBytes = size_t{48} << 10;
inline constexpr size_t kMaxSharedBytes = size_t{227} << 10;

// A kernel with its arguments, as a stream keeps it.
struct KernelLaunch {
  const void* kernel = nullptr;  // the function, to name it
  std::function<void()> body;    // what one thread does
  uint3 grid{1, 1, 1};
  uint3 block{1, 1, 1};
  size_t shared_bytes = 0;
  bool overlaps_previous = false;
};

// Ends the process when no GPU could run it.
void check_launch(const KernelLaunch& launch, size_t shared_limit);

struct Schedule {
  Order order = Order::kShuffled;
  uint64_t seed = 1;
};
Schedule schedule();

// A permutation of 0 .. count - 1 that needs no memory.
class Permutation {
 public:
  Permutation() = default;
  Permutation(Order order, uint64_t random, uint64_t count);
  uint64_t operator[](uint64_t i) const { return (i * factor_ + shift_) % count_; }

 private:
  uint64_t factor_ = 1, shift_ = 0, count_ = 1;
};

class BlockRunner {
 public:
  static BlockRunner& of_this_thread();
  // Null when no kernel runs on this host thread.
  static BlockRunner* running();

  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  void run(const KernelLaunch& launch) { run(launch, nullptr); }

  // The kernel before this one has not run yet: `wait_for_previous` is called, once, when threads
  // of a block wait for that one and the others can't go on; when it returns they do.
  void run(const KernelLaunch& launch, std::function<void()> wait_for_previous);

  // Called on the fibers of device code.
  std::byte* begin_collective(Collective kind, unsigned mask);
  void finish_collective(void (*complete)(std::byte*));
  int block_barrier(Barrier kind, int predicate);
  void yield_thread();
  unsigned lane_index() const { return current_->lane; }
  unsigned lanes_present() const { return warp().present; }
  std::byte* dynamic_shared() const { return shared_; }
  size_t dynamic_shared_bytes() const { return shared_bytes_; }
  // Static shared memory too, which is slower to tell.
  bool in_shared(const void* pointer, size_t bytes) const;
  bool in_dynamic_shared(const void* pointer, size_t bytes) const {
    const auto* at = static_cast<const std::byte*>(pointer);
    return at >= shared_ && at + bytes <= shared_ + shared_bytes_;
  }
  void copy_async(void* to, const void* from, bool valid);
  void copy_async_commit() { ++current_->num_groups; }
  void copy_async_wait(int num_pending);
  void wait_for_previous();
  [[noreturn]] void fail(const char* format, va_list arguments);

 private:
  struct PendingCopy {
    std::byte* to;
    const std::byte* from;
    bool valid;
    uint64_t group;
  };
  struct Thread {
    Fiber fiber;
    uint3 index;
    unsigned warp, lane;
    std::vector<PendingCopy> copies;  // cp.async that has not arrived, oldest first
    uint64_t num_groups = 0;          // that were committed
  };
  struct Warp {
    uint32_t present;     // its lanes
    uint32_t ready;       // those that can run on
    uint32_t arrived;     // those that wait at the collective `kind`
    uint32_t at_barrier;  // those that wait at the barrier of the block
    uint32_t at_wait;     // those that wait for the kernel before this one
    Collective kind;
    uint32_t generation;     // of collectives
    uint32_t cursor;         // lanes of this pass that had their turn
    uint32_t factor, shift;  // lane of turn i: (i * factor + shift) % 32
    alignas(64) std::byte operands[2][kMaxOperandBytes * 32];  // by generation % 2
  };

  static void thread_main();
  void run_block(const KernelLaunch& launch, uint64_t linear);
  void prepare_threads(const uint3& block);
  void run_threads();
  void end_wait_for_previous();
  Warp& warp() { return warps_[current_->warp]; }
  const Warp& warp() const { return warps_[current_->warp]; }
  void start_pass(Warp& warp);
  void choose_warp();
  Thread* next_thread();
  void leave();
  uint64_t random();
  std::string where() const;
  std::string states() const;
  [[noreturn]] void fail_deadlock();

  Schedule schedule_;
  uint64_t random_state_ = 1;
  uint64_t num_launches_ = 0;
  uint64_t num_switches_ = 0;

  Fiber host_;
  std::deque<Thread> threads_;  // never move: fibers know their own
  std::vector<Warp> warps_;
  std::vector<std::byte> shared_storage_;
  std::byte* shared_ = nullptr;
  size_t shared_bytes_ = 0;
  // Where static shared memory was seen: in the thread-local storage of one module.
  mutable uintptr_t static_first_ = 0, static_last_ = 0;

  const KernelLaunch* launch_ = nullptr;
  unsigned num_threads_ = 0;
  Thread* current_ = nullptr;
  unsigned warp_now_ = 0;
  uint32_t runnable_warps_ = 0;
  unsigned num_done_ = 0;
  bool waited_for_previous_ = false;
  std::function<void()> wait_for_previous_;  // empty: the kernel before has run

  // The barrier of the block.
  Barrier barrier_kind_ = Barrier::kSync;
  unsigned barrier_arrived_ = 0;
  unsigned barrier_votes_ = 0;
  uint32_t barrier_generation_ = 0;
  std::array<int, 2> barrier_result_{};
};

}  // namespace tgi::cuda_emulation
