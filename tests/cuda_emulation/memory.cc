// Memory of the emulated runtime. Device memory comes from malloc, so that AddressSanitizer guards
// it, and begins as NaNs. Copies are checked against what is allocated.
#include <cstdlib>
#include <cstring>

#include "tests/cuda_emulation/runtime_state.h"

namespace tgi::cuda_emulation {
namespace {

// A copy from pageable memory of up to this size is taken at once, as the driver does; a larger one
// makes the call wait.
constexpr size_t kStagedBytes = size_t{64} << 10;
constexpr size_t kAlignment = 256;

uintptr_t address(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

cudaError_t allocate(void** out, size_t bytes, MemoryKind kind) {
  RuntimeState& state = runtime();
  *out = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (kind == MemoryKind::kDevice) {
    if (state.failing_allocations > 0 && state.allocations_before_failure-- <= 0) {
      --state.failing_allocations;
      return cudaErrorMemoryAllocation;
    }
    Device& device = state.devices[static_cast<size_t>(current_device())];
    if (bytes > state.total_bytes - device.used_bytes) return cudaErrorMemoryAllocation;
    device.used_bytes += bytes;
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) return cudaErrorMemoryAllocation;
  std::memset(memory, 0xff, bytes);
  state.allocations[address(memory)] = {bytes, kind, current_device()};
  *out = memory;
  return cudaSuccess;
}

// REQUIRES: nothing uses it any more.
cudaError_t release(void* memory, MemoryKind kind) {
  RuntimeState& state = runtime();
  const auto found = state.allocations.find(address(memory));
  if (found == state.allocations.end() || found->second.kind != kind) return cudaErrorInvalidValue;
  const auto device = static_cast<size_t>(found->second.device);
  if (kind == MemoryKind::kDevice && device < state.devices.size()) {
    size_t& used = state.devices[device].used_bytes;
    used -= std::min(used, found->second.bytes);
  }
  state.allocations.erase(found);
  std::free(memory);
  return cudaSuccess;
}

// All work that may use this memory.
void run_users(Lock& lock, const void* memory) {
  const Allocation* allocation = find_allocation(memory, 1);
  const int owner = allocation == nullptr ? current_device() : allocation->device;
  run_device(lock, current_device());
  if (owner != current_device()) run_device(lock, owner);
}

cudaError_t free_now(void* memory, MemoryKind kind) {
  Call call;
  if (memory == nullptr) return Call::end(call.error());
  if (call.error() == cudaSuccess) {
    const cudaError_t refused = refuse_in_capture();
    if (refused != cudaSuccess) return Call::end(refused);
    run_users(call.lock(), memory);
  }
  // A lost device gives its memory back all the same, or leak checkers would complain of it.
  const cudaError_t error = release(memory, kind);
  return Call::end(call.error() != cudaSuccess ? call.error() : error);
}

size_t sum_bytes(bool device) {
  const Lock lock(runtime().mutex);
  size_t sum = 0;
  for (const auto& [first, allocation] : runtime().allocations) {
    if ((allocation.kind == MemoryKind::kDevice) == device) sum += allocation.bytes;
  }
  return sum;
}

struct Copy {
  void* to;
  size_t to_pitch;
  const void* from;
  size_t from_pitch;
  size_t width, height;

  size_t to_bytes() const { return to_pitch * (height - 1) + width; }
  size_t from_bytes() const { return from_pitch * (height - 1) + width; }
  void run() const {
    for (size_t i = 0; i < height; ++i) {
      std::memmove(static_cast<char*>(to) + i * to_pitch,
                   static_cast<const char*>(from) + i * from_pitch, width);
    }
  }
};

bool is_device(const Allocation* allocation) {
  return allocation != nullptr && allocation->kind == MemoryKind::kDevice;
}

cudaError_t check_copy(const Copy& copy, cudaMemcpyKind kind) {
  if (copy.to_pitch < copy.width || copy.from_pitch < copy.width) return cudaErrorInvalidPitchValue;
  const bool to_device = is_device(find_allocation(copy.to, copy.to_bytes()));
  const bool from_device = is_device(find_allocation(copy.from, copy.from_bytes()));
  // Begins in device memory and ends behind it.
  if (!to_device && is_device(find_allocation(copy.to, 1))) return cudaErrorInvalidValue;
  if (!from_device && is_device(find_allocation(copy.from, 1))) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return wants_to == to_device && wants_from == from_device ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t add_copy(const Copy& copy, cudaMemcpyKind kind, cudaStream_t handle, bool wait) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  if (copy.width == 0 || copy.height == 0) return cudaSuccess;
  cudaError_t error = check_copy(copy, kind);
  if (error == cudaSuccess && wait) error = refuse_in_capture();
  if (error != cudaSuccess) return Call::end(error);
  const bool pageable_to = find_allocation(copy.to, copy.to_bytes()) == nullptr;
  const bool pageable_from = find_allocation(copy.from, copy.from_bytes()) == nullptr;
  if (stream->capture && (pageable_to || pageable_from)) {
    stream->capture->invalid = true;
    return Call::end(cudaErrorStreamCaptureUnsupported);
  }
  if (!wait && (pageable_to || pageable_from)) ++runtime().num_pageable_copies;
  if (pageable_from && !pageable_to && copy.from_bytes() <= kStagedBytes) {
    const auto* first = static_cast<const char*>(copy.from);
    auto staged = std::make_shared<std::vector<char>>(first, first + copy.from_bytes());
    error = add_work(call.lock(), stream, [copy, staged] {
      Copy from_stage = copy;
      from_stage.from = staged->data();
      from_stage.run();
    });
  } else {
    error = add_work(call.lock(), stream, [copy] { copy.run(); });
    wait = wait || pageable_to || pageable_from;
  }
  if (error == cudaSuccess && wait) run_until(call.lock(), end_of(stream));
  return Call::end(error);
}

cudaError_t add_set(
    void* memory, size_t pitch, int value, size_t width, size_t height, cudaStream_t handle) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  if (width == 0 || height == 0) return cudaSuccess;
  if (pitch < width || find_allocation(memory, pitch * (height - 1) + width) == nullptr) {
    return Call::end(cudaErrorInvalidValue);
  }
  return Call::end(add_work(call.lock(), stream, [=] {
    for (size_t i = 0; i < height; ++i) {
      std::memset(static_cast<char*>(memory) + i * pitch, value, width);
    }
  }));
}

}  // namespace

const Allocation* find_allocation(const void* memory, size_t bytes) {
  const auto& all = runtime().allocations;
  auto after = all.upper_bound(address(memory));
  if (after == all.begin()) return nullptr;
  const auto& [first, allocation] = *--after;
  return address(memory) + bytes <= first + allocation.bytes ? &allocation : nullptr;
}

void fail_allocations(int count, int after) {
  const Lock lock(runtime().mutex);
  runtime().failing_allocations = count;
  runtime().allocations_before_failure = after;
}
size_t allocated_bytes() {
  return sum_bytes(true);
}
size_t pinned_bytes() {
  return sum_bytes(false);
}

}  // namespace tgi::cuda_emulation

using namespace tgi::cuda_emulation;

cudaError_t cudaMalloc(void** out, size_t bytes) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const cudaError_t refused = refuse_in_capture();
  return Call::end(refused != cudaSuccess ? refused : allocate(out, bytes, MemoryKind::kDevice));
}
cudaError_t cudaFree(void* memory) {
  return free_now(memory, MemoryKind::kDevice);
}
cudaError_t cudaMallocAsync(void** out, size_t bytes, cudaStream_t handle) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  if (stream->capture) return Call::end(cudaErrorStreamCaptureUnsupported);
  return Call::end(allocate(out, bytes, MemoryKind::kDevice));
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t handle) {
  Call call;
  if (call.error() != cudaSuccess || memory == nullptr) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  if (stream->capture) return Call::end(cudaErrorStreamCaptureUnsupported);
  if (!is_device(find_allocation(memory, 1))) return Call::end(cudaErrorInvalidValue);
  return Call::end(add_work(call.lock(), stream, [memory] {
    const Lock lock(runtime().mutex);
    release(memory, MemoryKind::kDevice);
  }));
}
cudaError_t cudaMallocHost(void** out, size_t bytes, unsigned flags) {
  return cudaHostAlloc(out, bytes, flags);
}
cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const cudaError_t refused = refuse_in_capture();
  return Call::end(refused != cudaSuccess ? refused : allocate(out, bytes, MemoryKind::kPinned));
}
cudaError_t cudaFreeHost(void* memory) {
  return free_now(memory, MemoryKind::kPinned);
}
cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (memory == nullptr || bytes == 0) return Call::end(cudaErrorInvalidValue);
  const auto next = runtime().allocations.lower_bound(address(memory));
  if (find_allocation(memory, 1) != nullptr ||
      (next != runtime().allocations.end() && next->first < address(memory) + bytes)) {
    return Call::end(cudaErrorHostMemoryAlreadyRegistered);
  }
  runtime().allocations[address(memory)] = {bytes, MemoryKind::kRegistered, current_device()};
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  Call call;
  if (call.error() == cudaSuccess) run_users(call.lock(), memory);
  const auto found = runtime().allocations.find(address(memory));
  if (found == runtime().allocations.end() || found->second.kind != MemoryKind::kRegistered) {
    return Call::end(cudaErrorHostMemoryNotRegistered);
  }
  runtime().allocations.erase(found);
  return Call::end(call.error());
}
cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (find_allocation(host, 1) == nullptr) return Call::end(cudaErrorInvalidValue);
  *out = host;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  *attributes = {};
  const Allocation* allocation = find_allocation(pointer, 1);
  attributes->device = allocation == nullptr ? -2 : allocation->device;
  if (allocation == nullptr) return cudaSuccess;
  attributes->type = is_device(allocation) ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (!is_device(allocation)) attributes->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  *total = runtime().total_bytes;
  *free = *total - runtime().devices[static_cast<size_t>(current_device())].used_bytes;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add_copy({to, bytes, from, bytes, bytes, 1}, kind, nullptr, true);
}
cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return add_copy({to, bytes, from, bytes, bytes, 1}, kind, stream, false);
}
cudaError_t cudaMemcpy2D(void* to,
                         size_t to_pitch,
                         const void* from,
                         size_t from_pitch,
                         size_t width,
                         size_t height,
                         cudaMemcpyKind kind) {
  return add_copy({to, to_pitch, from, from_pitch, width, height}, kind, nullptr, true);
}
cudaError_t cudaMemcpy2DAsync(void* to,
                              size_t to_pitch,
                              const void* from,
                              size_t from_pitch,
                              size_t width,
                              size_t height,
                              cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return add_copy({to, to_pitch, from, from_pitch, width, height}, kind, stream, false);
}
cudaError_t cudaMemcpyPeerAsync(
    void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return add_copy({to, bytes, from, bytes, bytes, 1}, cudaMemcpyDeviceToDevice, stream, false);
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return add_set(memory, bytes, value, bytes, 1, nullptr);
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return add_set(memory, bytes, value, bytes, 1, stream);
}
cudaError_t cudaMemset2DAsync(
    void* memory, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return add_set(memory, pitch, value, width, height, stream);
}
