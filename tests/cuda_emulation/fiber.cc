#include "tests/cuda_emulation/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/cuda_emulation/sanitizers.h"

namespace tgi::cuda_emulation {
namespace {

#if defined(TGI_ADDRESS_SANITIZER) || defined(TGI_THREAD_SANITIZER)
constexpr size_t kStackBytes = size_t{256} << 10;
#else
constexpr size_t kStackBytes = size_t{128} << 10;
#endif

// The first thing that a new fiber does needs what it has to call; a switch can't carry it, as it
// carries who switched.
thread_local void (*starting_entry)() = nullptr;

// Runs on the fiber that was switched to. `before` is the one that switched, `context` where it
// stands.
void arrive(Fiber& me, Fiber& before, void* context) {
#if defined(TGI_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(me.fake_stack, &before.stack_bottom, &before.stack_bytes);
#else
  static_cast<void>(me);
#endif
  before.context = context;
}

void begin(boost::context::detail::transfer_t from) {
  Fiber nobody;
  arrive(nobody, *static_cast<Fiber*>(from.data), from.fctx);
  starting_entry();
  std::abort();  // unreachable
}

}  // namespace

Fiber make_fiber(void (*entry)(), unsigned colour) {
  starting_entry = entry;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Fiber fiber;
  fiber.mapping_bytes = kStackBytes + page;
  fiber.mapping = mmap(nullptr, fiber.mapping_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (fiber.mapping == MAP_FAILED) {
    std::perror("cuda emulation: no memory for the stack of an emulated thread");
    std::abort();
  }
  mprotect(fiber.mapping, page, PROT_NONE);  // an overflow crashes instead of writing elsewhere
  auto* bottom = static_cast<char*>(fiber.mapping) + page;
  const size_t shift = colour % 61 * 192;
  fiber.stack_bottom = bottom;
  fiber.stack_bytes = kStackBytes - shift;
  fiber.context =
      boost::context::detail::make_fcontext(bottom + fiber.stack_bytes, fiber.stack_bytes, begin);
#if defined(TGI_THREAD_SANITIZER)
  fiber.thread_of_tsan = __tsan_create_fiber(0);
#endif
  return fiber;
}

void free_fiber(Fiber& fiber) {
#if defined(TGI_THREAD_SANITIZER)
  if (fiber.thread_of_tsan != nullptr) __tsan_destroy_fiber(fiber.thread_of_tsan);
#endif
  if (fiber.mapping != nullptr) {
#if defined(TGI_ADDRESS_SANITIZER)
    // A fiber is left in the middle of a function. What is mapped here next, a stack or not, must
    // not inherit that function's redzones: munmap leaves them.
    ASAN_UNPOISON_MEMORY_REGION(fiber.mapping, fiber.mapping_bytes);
#endif
    munmap(fiber.mapping, fiber.mapping_bytes);
  }
  fiber = {};
}

void adopt_host_thread(Fiber& fiber) {
#if defined(TGI_THREAD_SANITIZER)
  fiber.thread_of_tsan = __tsan_get_current_fiber();
#else
  static_cast<void>(fiber);
#endif
}

void switch_fiber(Fiber& from, Fiber& to) {
#if defined(TGI_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack_bottom, to.stack_bytes);
#endif
#if defined(TGI_THREAD_SANITIZER)
  __tsan_switch_to_fiber(to.thread_of_tsan, 0);
#endif
  const auto before = boost::context::detail::jump_fcontext(to.context, &from);
  arrive(from, *static_cast<Fiber*>(before.data), before.fctx);
}

}  // namespace tgi::cuda_emulation
