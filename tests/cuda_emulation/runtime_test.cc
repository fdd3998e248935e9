// Memory, streams, events and faults of the emulated runtime.
#include <thread>

#include "tests/catch.h"
#include "tests/cuda_emulation/test_support.h"

using namespace tgi::cuda_emulation_tests;
namespace emulation = tgi::cuda_emulation;

namespace {

__global__ void add_kernel(int* values, int count, int by) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += by;
}

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    require(cudaStreamCreateWithFlags(&stream_, flags));
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = 0) { require(cudaEventCreateWithFlags(&event_, flags)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Pinned {
 public:
  explicit Pinned(size_t count) { require(cudaMallocHost(&data_, count * sizeof(int))); }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  int& operator[](size_t i) const { return data_[i]; }
  int* data() const { return data_; }

 private:
  int* data_ = nullptr;
};

void add(cudaStream_t stream, const DeviceArray<int>& values, int by) {
  launch({.block = 4, .stream = stream}, add_kernel, values.data(), 4, by);
}

}  // namespace

TEST_CASE("a result that is read too early is not there") {
  const Stream stream;
  const DeviceArray<int> values({1, 2, 3, 4});
  const Pinned result(4);
  result[0] = 0;
  add(stream, values, 10);
  require(cudaMemcpyAsync(result.data(), values.data(), 16, cudaMemcpyDeviceToHost, stream));
  CHECK(result[0] == 0);
  require(cudaStreamSynchronize(stream));
  CHECK((result[0] == 11 && result[3] == 14));
  emulation::set_deferred(false);
  require(cudaMemsetAsync(values.data(), 0, 16, stream));
  require(cudaMemcpyAsync(result.data(), values.data(), 16, cudaMemcpyDeviceToHost, stream));
  CHECK(result[0] == 0);
  emulation::set_deferred(true);
}

TEST_CASE("pinned memory that is reused too early spoils the copy, pageable memory does not") {
  const Stream stream;
  const DeviceArray<int> values(4);
  const Pinned staging(4);
  for (size_t i = 0; i < 4; ++i) staging[i] = 1;
  require(cudaMemcpyAsync(values.data(), staging.data(), 16, cudaMemcpyHostToDevice, stream));
  staging[0] = 2;
  require(cudaStreamSynchronize(stream));
  CHECK(values.values() == std::vector<int>{2, 1, 1, 1});
  std::vector<int> pageable(4, 3);
  require(cudaMemcpyAsync(values.data(), pageable.data(), 16, cudaMemcpyHostToDevice, stream));
  pageable[0] = 4;
  require(cudaStreamSynchronize(stream));
  CHECK(values.values() == std::vector<int>{3, 3, 3, 3});
}

TEST_CASE("a stream that forgets to wait for another one sees nothing of it") {
  const Stream first, second;
  const DeviceArray<int> values({0, 0, 0, 0});
  const Pinned result(4);
  const Event event(cudaEventDisableTiming);
  for (const bool waits : {false, true}) {
    add(first, values, 1);
    require(cudaEventRecord(event, first));
    add(first, values, 100);  // after the event: nobody waits for it
    if (waits) require(cudaStreamWaitEvent(second, event));
    require(cudaMemcpyAsync(result.data(), values.data(), 16, cudaMemcpyDeviceToHost, second));
    require(cudaStreamSynchronize(second));
    CHECK(result[0] == (waits ? 102 : 0));
    require(cudaStreamSynchronize(first));
  }
}

TEST_CASE("the legacy stream waits for blocking streams and they for it") {
  const Stream blocking(cudaStreamDefault), free_running;
  const DeviceArray<int> values({0, 0, 0, 0}), other({0, 0, 0, 0});
  add(blocking, values, 1);
  add(nullptr, values, 10);
  add(blocking, values, 100);
  add(free_running, other, 1);
  require(cudaStreamSynchronize(blocking));
  const Pinned result(4);
  const Stream reader;
  require(cudaMemcpyAsync(result.data(), values.data(), 16, cudaMemcpyDeviceToHost, reader));
  require(cudaStreamSynchronize(reader));
  CHECK(result[0] == 111);
  require(cudaMemcpyAsync(result.data(), other.data(), 16, cudaMemcpyDeviceToHost, reader));
  require(cudaStreamSynchronize(reader));
  CHECK(result[0] == 0);
  require(cudaDeviceSynchronize());
  CHECK(other.values()[0] == 1);
}

TEST_CASE("queries say that work is not ready, and then that it is") {
  const Stream stream;
  const DeviceArray<int> values({0, 0, 0, 0});
  const Event start, end;
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  require(cudaEventRecord(start, stream));
  add(stream, values, 1);
  require(cudaEventRecord(end, stream));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorNotReady);
  CHECK(cudaEventQuery(end) == cudaErrorNotReady);
  CHECK(cudaEventQuery(end) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
  require(cudaEventElapsedTime(&ms, start, end));
  CHECK(ms >= 0);
  add(stream, values, 1);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  int calls = 0;
  require(cudaLaunchHostFunc(
      stream, [](void* data) { ++*static_cast<int*>(data); }, &calls));
  CHECK(calls == 0);
  require(cudaStreamSynchronize(stream));
  CHECK(calls == 1);
}

TEST_CASE("memory begins as NaN, is counted, and runs out") {
  emulation::set_devices(1, 1 << 20);
  const size_t before = emulation::allocated_bytes();
  {
    const DeviceArray<float> memory(1000);
    for (const float value : memory.values()) REQUIRE(std::isnan(value));
    CHECK(emulation::allocated_bytes() == before + 4000);
    size_t free = 0, total = 0;
    require(cudaMemGetInfo(&free, &total));
    CHECK((total == 1 << 20 && free == (1 << 20) - 4000));
    void* more = nullptr;
    CHECK(cudaMalloc(&more, 1 << 20) == cudaErrorMemoryAllocation);
    CHECK(more == nullptr);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  CHECK(emulation::allocated_bytes() == before);
  emulation::set_devices(1);
}

TEST_CASE("copies outside of what is allocated are refused") {
  const DeviceArray<int> values({1, 2, 3, 4});
  int host[8] = {};
  CHECK(cudaMemcpy(host, values.data(), 20, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, values.data(), 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(values.data(), host, 16, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemset(values.data() + 1, 0, 16) == cudaErrorInvalidValue);
  CHECK(cudaFree(values.data() + 1) == cudaErrorInvalidValue);
  // Two columns of the device's (2, 2), each row of the host's 4 wide.
  require(cudaMemcpy2D(host, 16, values.data(), 8, 8, 2, cudaMemcpyDeviceToHost));
  CHECK((host[0] == 1 && host[1] == 2 && host[2] == 0 && host[4] == 3 && host[5] == 4));
  CHECK(cudaMemcpy2D(host, 16, values.data(), 8, 12, 2, cudaMemcpyDeviceToHost) ==
        cudaErrorInvalidPitchValue);
  require(cudaHostRegister(host, sizeof(host), 0));
  CHECK(cudaHostRegister(host, 4, 0) == cudaErrorHostMemoryAlreadyRegistered);
  cudaPointerAttributes attributes;
  require(cudaPointerGetAttributes(&attributes, host + 3));
  CHECK(attributes.type == cudaMemoryTypeHost);
  require(cudaHostUnregister(host));
  CHECK(cudaHostUnregister(host) == cudaErrorHostMemoryNotRegistered);
  cudaGetLastError();
}

TEST_CASE("allocations fail and devices are lost when a test says so") {
  void* memory = nullptr;
  emulation::fail_allocations(1, 1);
  require(cudaMalloc(&memory, 16));
  require(cudaMemset(memory, 0, 16));
  void* second = nullptr;
  CHECK(cudaMalloc(&second, 16) == cudaErrorMemoryAllocation);
  require(cudaMalloc(&second, 16));
  emulation::lose_devices(cudaErrorECCUncorrectable, 1);
  require(cudaMemset(memory, 0, 16));
  CHECK(cudaMemset(memory, 0, 16) == cudaErrorECCUncorrectable);
  CHECK(cudaDeviceSynchronize() == cudaErrorECCUncorrectable);
  CHECK(cudaPeekAtLastError() == cudaErrorECCUncorrectable);
  CHECK(cudaFree(memory) == cudaErrorECCUncorrectable);  // but it is free
  emulation::restore_devices();
  require(cudaDeviceSynchronize());
  require(cudaFree(second));
}

TEST_CASE("several devices, each with its own thread") {
  emulation::set_devices(3);
  int count = 0;
  require(cudaGetDeviceCount(&count));
  CHECK(count == 3);
  CHECK(cudaSetDevice(3) == cudaErrorInvalidDevice);
  cudaGetLastError();
  std::vector<int> results(3);
  std::vector<std::thread> threads;
  for (int device = 0; device < 3; ++device) {
    threads.emplace_back([device, &results] {
      cudaSetDevice(device);
      cudaStream_t stream = nullptr;
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
      int* values = nullptr;
      cudaMalloc(&values, 1024);
      cudaMemsetAsync(values, 0, 1024, stream);
      cudaLaunchConfig_t config{};
      config.gridDim = 8;
      config.blockDim = 32;
      config.stream = stream;
      for (int i = 0; i < 50; ++i) cudaLaunchKernelEx(&config, add_kernel, values, 256, device + 1);
      cudaStreamSynchronize(stream);
      cudaMemcpy(&results[static_cast<size_t>(device)], values + 255, 4, cudaMemcpyDeviceToHost);
      cudaFree(values);
      cudaStreamDestroy(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results == std::vector<int>{50, 100, 150});
  // A stream takes launches only of the thread's current device.
  const Stream stream;
  require(cudaSetDevice(1));
  cudaLaunchConfig_t config{};
  config.stream = stream;
  CHECK(cudaLaunchKernelEx(&config, add_kernel, nullptr, 0, 0) == cudaErrorInvalidResourceHandle);
  require(cudaSetDevice(0));
  cudaGetLastError();
  emulation::set_devices(0);
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  CHECK(count == 0);
  cudaGetLastError();
  emulation::set_devices(1);
}

TEST_CASE("two threads that wait for one another's streams in turns") {
  const Stream first, second;
  const DeviceArray<int> values({0, 0, 0, 0});
  for (int i = 0; i < 20; ++i) {
    const Event there, back;
    add(first, values, 1);
    require(cudaEventRecord(there, first));
    require(cudaStreamWaitEvent(second, there));
    add(second, values, 1);
    require(cudaEventRecord(back, second));
    require(cudaStreamWaitEvent(first, back));
  }
  std::thread other([&] { cudaStreamSynchronize(second); });
  require(cudaStreamSynchronize(first));
  other.join();
  CHECK(values.values() == std::vector<int>{40, 40, 40, 40});
}

TEST_CASE("the properties of a device that kernels are chosen by") {
  cudaDeviceProp properties;
  require(cudaGetDeviceProperties(&properties, 0));
  CHECK((properties.major == 9 && properties.minor == 0 && properties.multiProcessorCount == 4));
  CHECK(properties.sharedMemPerBlockOptin == size_t{227} << 10);
  int value = 0;
  require(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK(value == 4);
  require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, add_kernel, 256, 100 << 10));
  CHECK(value == 2);
}
