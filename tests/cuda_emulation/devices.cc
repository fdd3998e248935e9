// Devices, errors and attributes of the emulated runtime.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/cuda_emulation/block_runner.h"
#include "tests/cuda_emulation/runtime_state.h"

namespace tgi::cuda_emulation {
namespace {

thread_local int current_device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

std::atomic<Order> current_order{Order::kShuffled};
std::atomic<uint64_t> current_seed{1};

struct ErrorName {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorName kErrorNames[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
};

const char* variable(const char* name) {
  return std::getenv(name);
}

void make_devices(RuntimeState& state, int count) {
  state.devices.clear();
  for (int i = 0; i < count; ++i) {
    Device& device = state.devices.emplace_back();
    device.legacy = std::make_shared<Stream>();
    device.legacy->device = i;
  }
}

RuntimeState* make_runtime() {
  auto* state = new RuntimeState;
  const char* memory = variable("TGI_EMULATED_GPU_MEMORY");
  state->total_bytes = memory != nullptr ? std::strtoull(memory, nullptr, 10) : size_t{1} << 30;
  const char* count = variable("TGI_EMULATED_GPUS");
  make_devices(*state, count != nullptr ? std::atoi(count) : 1);
  if (const char* deferred = variable("TGI_EMULATED_GPU_DEFERRED")) {
    state->deferred = std::atoi(deferred) != 0;
  }
  const std::string order = variable("TGI_EMULATED_GPU_ORDER") != nullptr
                                ? variable("TGI_EMULATED_GPU_ORDER")
                                : "shuffled";
  const char* seed = variable("TGI_EMULATED_GPU_SEED");
  set_order(order == "forward"    ? Order::kForward
            : order == "backward" ? Order::kBackward
                                  : Order::kShuffled,
            seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
  return state;
}

bool is_device(int device) {
  return device >= 0 && static_cast<size_t>(device) < runtime().devices.size();
}

}  // namespace

RuntimeState& runtime() {
  static RuntimeState* state = make_runtime();
  return *state;
}

int current_device() {
  return is_device(current_device_of_thread) ? current_device_of_thread : 0;
}

Schedule schedule() {
  runtime();  // reads the environment
  return {current_order, current_seed};
}
void set_order(Order order, uint64_t seed) {
  current_order = order;
  current_seed = seed;
}

void set_deferred(bool on) {
  const Lock lock(runtime().mutex);
  runtime().deferred = on;
}

void set_devices(int num_devices, size_t total_memory_bytes, int num_multiprocessors) {
  RuntimeState& state = runtime();
  const Lock lock(state.mutex);
  state.total_bytes = total_memory_bytes;
  state.num_multiprocessors = num_multiprocessors;
  state.captures.clear();
  make_devices(state, num_devices);
  if (!is_device(current_device_of_thread)) current_device_of_thread = 0;
}

void set_compute_capability(int major, int minor) {
  const Lock lock(runtime().mutex);
  runtime().compute_capability[0] = major;
  runtime().compute_capability[1] = minor;
}

void forget_kernels() {
  const Lock lock(runtime().mutex);
  runtime().loaded_kernels.clear();
}

void lose_devices(cudaError_t error, int64_t after) {
  RuntimeState& state = runtime();
  const Lock lock(state.mutex);
  state.loss = error;
  state.losing = true;
  state.calls_before_loss = after;
}
void restore_devices() {
  RuntimeState& state = runtime();
  const Lock lock(state.mutex);
  state.losing = false;
  state.loss = last_error = cudaSuccess;
}

Call::Call() : lock_(runtime().mutex) {
  RuntimeState& state = runtime();
  if (state.losing && state.calls_before_loss-- <= 0) {
    error_ = state.loss;
    abandon_work(lock_);
  } else if (state.devices.empty()) {
    error_ = cudaErrorNoDevice;
  }
}

cudaError_t Call::end(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

}  // namespace tgi::cuda_emulation

using namespace tgi::cuda_emulation;

const char* cudaGetErrorString(cudaError_t error) {
  for (const ErrorName& row : kErrorNames) {
    if (row.error == error) return row.text;
  }
  return "an error that the emulation has no text for";
}
const char* cudaGetErrorName(cudaError_t error) {
  for (const ErrorName& row : kErrorNames) {
    if (row.error == error) return row.name;
  }
  return "cudaErrorUnknown";
}
cudaError_t cudaGetLastError() {
  Call call;
  const cudaError_t error = call.error() != cudaSuccess ? call.error() : last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  Call call;
  return call.error() != cudaSuccess ? call.error() : last_error;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  Call call;
  *count = static_cast<int>(runtime().devices.size());
  return Call::end(call.error());
}
cudaError_t cudaSetDevice(int device) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (!is_device(device)) return Call::end(cudaErrorInvalidDevice);
  current_device_of_thread = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  Call call;
  *device = current_device_of_thread;
  return Call::end(call.error());
}
cudaError_t cudaSetDeviceFlags(unsigned) {
  Call call;
  return Call::end(call.error());
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (!is_device(device)) return Call::end(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "Emulated GPU");
  properties->uuid.bytes[15] = static_cast<char>(device + 1);
  properties->totalGlobalMem = runtime().total_bytes;
  properties->sharedMemPerBlock = kDefaultSharedBytes;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = static_cast<int>(kMaxThreads);
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->totalConstMem = 65536;
  properties->major = runtime().compute_capability[0];
  properties->minor = runtime().compute_capability[1];
  properties->multiProcessorCount = runtime().num_multiprocessors;
  properties->canMapHostMemory = properties->concurrentKernels = 1;
  properties->pciBusID = device + 1;
  properties->asyncEngineCount = 2;
  properties->unifiedAddressing = 1;
  properties->memoryBusWidth = 5120;
  properties->l2CacheSize = 50 << 20;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->streamPrioritiesSupported = 1;
  properties->sharedMemPerMultiprocessor = size_t{228} << 10;
  properties->managedMemory = 1;
  properties->sharedMemPerBlockOptin = kMaxSharedBytes;
  properties->maxBlocksPerMultiProcessor = 32;
  properties->reservedSharedMemPerBlock = 1024;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp all;
  const cudaError_t error = cudaGetDeviceProperties(&all, device);
  if (error != cudaSuccess) return error;
  const struct {
    cudaDeviceAttr attribute;
    size_t value;
  } rows[] = {
      {cudaDevAttrMaxThreadsPerBlock, kMaxThreads},
      {cudaDevAttrMaxSharedMemoryPerBlock, kDefaultSharedBytes},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMaxRegistersPerBlock, 65536},
      {cudaDevAttrMultiProcessorCount, static_cast<size_t>(all.multiProcessorCount)},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrEccEnabled, 0},
      {cudaDevAttrPciBusId, static_cast<size_t>(all.pciBusID)},
      {cudaDevAttrPciDeviceId, 0},
      {cudaDevAttrGlobalMemoryBusWidth, static_cast<size_t>(all.memoryBusWidth)},
      {cudaDevAttrL2CacheSize, static_cast<size_t>(all.l2CacheSize)},
      {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
      {cudaDevAttrAsyncEngineCount, 2},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrComputeCapabilityMajor, static_cast<size_t>(all.major)},
      {cudaDevAttrComputeCapabilityMinor, static_cast<size_t>(all.minor)},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, all.sharedMemPerMultiprocessor},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrCooperativeLaunch, 0},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, kMaxSharedBytes},
      {cudaDevAttrMaxPersistingL2CacheSize, 0},
      {cudaDevAttrMemoryPoolsSupported, 1},
  };
  for (const auto& row : rows) {
    if (row.attribute != attribute) continue;
    *value = static_cast<int>(row.value);
    return cudaSuccess;
  }
  return Call::end(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (!is_device(device)) return Call::end(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  Call call;
  *least = 0;
  *greatest = -5;
  return Call::end(call.error());
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  Call call;
  *can = is_device(device) && is_device(peer) && device != peer;
  return Call::end(call.error());
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  return Call::end(is_device(peer) && peer != current_device() ? cudaSuccess
                                                               : cudaErrorInvalidDevice);
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > kMaxSharedBytes) {
    return Call::end(cudaErrorInvalidValue);
  }
  runtime().allowed_shared_bytes[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  Call call;
  *attributes = {};
  attributes->maxThreadsPerBlock = static_cast<int>(kMaxThreads);
  attributes->numRegs = 32;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  const auto allowed = runtime().allowed_shared_bytes.find(kernel);
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(
      allowed == runtime().allowed_shared_bytes.end() ? kDefaultSharedBytes : allowed->second);
  return Call::end(call.error());
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void*,
                                                          int block_size,
                                                          size_t dynamic_bytes) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (block_size < 1) return Call::end(cudaErrorInvalidValue);
  const auto by_threads = static_cast<size_t>(2048 / block_size);
  const size_t by_shared = (size_t{228} << 10) / (dynamic_bytes + 1024);
  *blocks = static_cast<int>(std::min({by_threads, by_shared, size_t{32}}));
  return cudaSuccess;
}
