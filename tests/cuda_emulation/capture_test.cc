// Capture of streams into graphs, their replay, and what a capture forbids.
#include "tests/catch.h"
#include "tests/cuda_emulation/test_support.h"

using namespace tgi::cuda_emulation_tests;

namespace {

struct Parameters {
  int* values;
  int by;
};
__global__ void add_kernel(const __grid_constant__ Parameters parameters) {
  parameters.values[threadIdx.x] += parameters.by;
}

struct Streams {
  cudaStream_t main = nullptr, side = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  Streams() {
    require(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
    require(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    require(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    require(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  }
  ~Streams() {
    cudaStreamDestroy(main);
    cudaStreamDestroy(side);
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
    cudaGetLastError();
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
};

// Once outside of a capture, which loads the kernel.
void load_kernels() {
  const DeviceArray<int> values({0, 0, 0, 0});
  launch({.block = 4}, add_kernel, Parameters{values.data(), 0});
  require(cudaDeviceSynchronize());
}

void add(cudaStream_t stream, const DeviceArray<int>& values, int by) {
  launch({.block = 4, .stream = stream}, add_kernel, Parameters{values.data(), by});
}

}  // namespace

TEST_CASE("a captured stream runs when its graph is launched, as often as it is") {
  load_kernels();
  const Streams streams;
  const DeviceArray<int> values({1, 2, 3, 4}), copy({0, 0, 0, 0});
  require(cudaStreamBeginCapture(streams.main, cudaStreamCaptureModeThreadLocal));
  cudaStreamCaptureStatus status;
  require(cudaStreamIsCapturing(streams.main, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  int by = 5;
  add(streams.main, values, by);
  by = 1000;  // arguments were taken at the launch
  require(cudaEventRecord(streams.fork, streams.main));
  require(cudaStreamWaitEvent(streams.side, streams.fork));
  require(cudaMemcpyAsync(copy.data(), values.data(), 16, cudaMemcpyDeviceToDevice, streams.side));
  require(cudaEventRecord(streams.join, streams.side));
  require(cudaStreamWaitEvent(streams.main, streams.join));
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(streams.main, &graph));
  require(cudaStreamIsCapturing(streams.side, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  cudaGraphExec_t executable = nullptr;
  require(cudaGraphInstantiate(&executable, graph));
  require(cudaGraphDestroy(graph));
  require(cudaGraphUpload(executable, streams.main));
  CHECK(values.values()[0] == 1);
  for (int i = 0; i < 3; ++i) require(cudaGraphLaunch(executable, streams.main));
  require(cudaGraphExecDestroy(executable));  // what was launched still runs
  require(cudaStreamSynchronize(streams.main));
  CHECK(values.values() == std::vector<int>{16, 17, 18, 19});
  CHECK(copy.values() == values.values());
}

TEST_CASE("what a capture forbids makes it invalid") {
  const Streams streams;
  const DeviceArray<int> values({0, 0, 0, 0});
  int host[4];
  const auto in_capture = [&](auto call) {
    require(cudaStreamBeginCapture(streams.main, cudaStreamCaptureModeGlobal));
    const cudaError_t error = call();
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(streams.main, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    return error;
  };
  void* memory = nullptr;
  CHECK(in_capture([&] { return cudaMalloc(&memory, 16); }) == cudaErrorStreamCaptureUnsupported);
  CHECK(in_capture([&] { return cudaStreamSynchronize(streams.main); }) ==
        cudaErrorStreamCaptureUnsupported);
  CHECK(in_capture([&] { return cudaStreamQuery(streams.main); }) ==
        cudaErrorStreamCaptureUnsupported);
  CHECK(in_capture([] { return cudaDeviceSynchronize(); }) == cudaErrorStreamCaptureUnsupported);
  CHECK(in_capture([&] {
          return cudaMemcpyAsync(host, values.data(), 16, cudaMemcpyDeviceToHost, streams.main);
        }) == cudaErrorStreamCaptureUnsupported);
  CHECK(in_capture([&] {
          require(cudaEventRecord(streams.fork, streams.side));
          return cudaStreamWaitEvent(streams.main, streams.fork);
        }) == cudaErrorStreamCaptureIsolation);
}

TEST_CASE("relaxed captures and other threads' calls are let be") {
  const Streams streams;
  void* memory = nullptr;
  require(cudaStreamBeginCapture(streams.main, cudaStreamCaptureModeRelaxed));
  require(cudaMalloc(&memory, 16));
  require(cudaFree(memory));
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(streams.main, &graph));
  require(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(graph) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("a kernel is not loaded within a capture") {
  tgi::cuda_emulation::forget_kernels();
  const Streams streams;
  const DeviceArray<int> values({0, 0, 0, 0});
  cudaGraph_t graph = nullptr;
  const auto capture = [&] {
    require(cudaStreamBeginCapture(streams.main, cudaStreamCaptureModeThreadLocal));
    cudaLaunchConfig_t config{};
    config.gridDim = 1;
    config.blockDim = 4;
    config.stream = streams.main;
    const cudaError_t launched =
        cudaLaunchKernelEx(&config, add_kernel, Parameters{values.data(), 1});
    const cudaError_t ended = cudaStreamEndCapture(streams.main, &graph);
    return std::pair(launched, ended);
  };
  CHECK(capture() ==
        std::pair(cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated));
  cudaGetLastError();
  load_kernels();
  CHECK(capture() == std::pair(cudaSuccess, cudaSuccess));
  require(cudaGraphDestroy(graph));
}

TEST_CASE("a stream that joined a capture has to be joined again") {
  load_kernels();
  const Streams streams;
  const DeviceArray<int> values({0, 0, 0, 0});
  require(cudaStreamBeginCapture(streams.main, cudaStreamCaptureModeThreadLocal));
  require(cudaEventRecord(streams.fork, streams.main));
  require(cudaStreamWaitEvent(streams.side, streams.fork));
  add(streams.side, values, 1);
  require(cudaEventRecord(streams.join, streams.side));
  add(streams.side, values, 1);  // after the event that main waits for
  require(cudaStreamWaitEvent(streams.main, streams.join));
  CHECK(cudaEventQuery(streams.join) == cudaErrorCapturedEvent);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(streams.main, &graph) == cudaErrorStreamCaptureUnjoined);
}
