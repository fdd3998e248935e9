// Memory of the current GPU, and pinned memory of the host that it reads and writes by itself.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string_view>

#include "engine/tensor/tensor.h"

namespace tgi::cuda {

// Zeroed, 256-byte aligned. Throws kOutOfMemory with the size, the purpose and what is free.
Buffer allocate_device(size_t size_bytes, std::string_view purpose);
Buffer allocate_pinned(size_t size_bytes, std::string_view purpose);

// Makes the GPU current for the calling thread.
void use_device(int index);

// Owners of what the runtime counts by handles.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  void synchronize() const;

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&&) = delete;
  void record(cudaStream_t stream);
  void synchronize() const;
  bool has_passed() const;  // throws kDeviceLost
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tgi::cuda
