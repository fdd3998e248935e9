#include "cuda/device_memory.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr double kMiB = 1 << 20;

[[noreturn]] void fail_allocation(size_t size_bytes,
                                  std::string_view purpose,
                                  std::string_view where) {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  (void)cudaMemGetInfo(&free_bytes, &total_bytes);
  throw Error(
      Code::kOutOfMemory,
      fmt::format(
          "{}: {:.1f} MiB of {} can't be allocated, {:.1f} of {:.1f} MiB are free on the GPU; "
          "lower --cuda-memory-fraction, --max-batch-tokens or --kv-cache-memory, or end what "
          "else uses it",
          purpose, static_cast<double>(size_bytes) / kMiB, where,
          static_cast<double>(free_bytes) / kMiB, static_cast<double>(total_bytes) / kMiB));
}

}  // namespace

Buffer allocate_device(size_t size_bytes, std::string_view purpose) {
  if (size_bytes == 0) return {};
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, size_bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    fail_allocation(size_bytes, purpose, "GPU memory");
  }
  check(status, "allocating memory");
  Buffer buffer(data, size_bytes, [](void* pointer, size_t) { (void)cudaFree(pointer); });
  // This runs on the default stream, which others don't wait for.
  check(cudaMemsetAsync(data, 0, size_bytes, nullptr), "clearing memory");
  check(cudaStreamSynchronize(nullptr), "clearing memory");
  return buffer;
}

Buffer allocate_pinned(size_t size_bytes, std::string_view purpose) {
  if (size_bytes == 0) return {};
  void* data = nullptr;
  const cudaError_t status = cudaMallocHost(&data, size_bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    fail_allocation(size_bytes, purpose, "pinned host memory");
  }
  check(status, "allocating pinned memory");
  return Buffer(data, size_bytes, [](void* pointer, size_t) { (void)cudaFreeHost(pointer); });
}

void use_device(int index) {
  check(cudaSetDevice(index), "choosing a GPU");
}

Stream::Stream() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}

Stream::~Stream() {
  (void)cudaStreamDestroy(stream_);
}

void Stream::synchronize() const {
  check(cudaStreamSynchronize(stream_), "waiting for the GPU");
}

Event::Event(unsigned flags) {
  check(cudaEventCreateWithFlags(&event_, flags), "making an event");
}

Event::~Event() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

Event::Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

void Event::record(cudaStream_t stream) {
  check(cudaEventRecord(event_, stream), "recording an event");
}

void Event::synchronize() const {
  check(cudaEventSynchronize(event_), "waiting for a step");
}

bool Event::has_passed() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status == cudaErrorNotReady) return false;
  check(status, "waiting for a step");
  return true;
}

}  // namespace tgi::cuda
