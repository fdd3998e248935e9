// Memory for what a matrix is decoded into on its way to the device. Matrices follow each other and
// are alike: what one gives back the next one takes, and the system need not clear new pages for
// each.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace tgi {

// Aligned to a page. Throws std::bad_alloc. May be called by any thread.
void* take_scratch(size_t bytes);
void give_scratch(void* block, size_t bytes) noexcept;

// Returns to the system what nobody has taken.
void release_scratch() noexcept;

// Leaves elements as they are found where a vector would make them zero: whoever sizes one writes
// all of them.
template <typename T>
struct ScratchAllocator {
  using value_type = T;

  ScratchAllocator() = default;
  template <typename U>
  ScratchAllocator(const ScratchAllocator<U>&) noexcept {}  // NOLINT: as allocators are

  T* allocate(size_t count) { return static_cast<T*>(take_scratch(count * sizeof(T))); }
  void deallocate(T* block, size_t count) noexcept { give_scratch(block, count * sizeof(T)); }
  template <typename U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  bool operator==(const ScratchAllocator&) const = default;
};

template <typename T>
using ScratchVector = std::vector<T, ScratchAllocator<T>>;

}  // namespace tgi
