// A stack of its own to run on, and the switch from one to another, on boost's assembly. Sanitizers
// are told of each switch. A fiber stays with the host thread that made it.
#pragma once

#include <cstddef>

namespace tgi::cuda_emulation {

struct Fiber {
  void* context = nullptr;  // where it goes on; set while it does not run
  // What the sanitizers need of it.
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;
  void* thread_of_tsan = nullptr;
  // The pages of the stack, null for the stack that the host thread came with.
  void* mapping = nullptr;
  size_t mapping_bytes = 0;
};

// A fiber that calls `entry`, which never returns, when it is switched to for the first time.
// `colour` shifts the stack a little: else the hot ends of all stacks share one set of the cache.
Fiber make_fiber(void (*entry)(), unsigned colour);
void free_fiber(Fiber& fiber);

// For the stack of the host thread itself.
void adopt_host_thread(Fiber& fiber);

// Goes on with `to`; returns when somebody switches to `from`.
void switch_fiber(Fiber& from, Fiber& to);

}  // namespace tgi::cuda_emulation
