// Captures and graphs of the emulated runtime: the work that went to a capturing stream, in the
// order in which it came, which is a right one for all streams of the capture.
#include <algorithm>

#include "tests/cuda_emulation/runtime_state.h"

using tgi::cuda_emulation::Task;

struct CUgraph_st {
  std::vector<Task> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<Task>> nodes;
};

namespace tgi::cuda_emulation {
namespace {
thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;
}

cudaError_t refuse_in_capture() {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  bool refused = false;
  for (const auto& capture : runtime().captures) {
    const bool mine = capture->thread == std::this_thread::get_id();
    const bool forbids = (capture->mode == cudaStreamCaptureModeGlobal &&
                          (mine || mode_of_thread == cudaStreamCaptureModeGlobal)) ||
                         (capture->mode == cudaStreamCaptureModeThreadLocal && mine);
    if (!forbids) continue;
    capture->invalid = true;
    refused = true;
  }
  return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

}  // namespace tgi::cuda_emulation

using namespace tgi::cuda_emulation;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  if (handle == nullptr) return Call::end(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return Call::end(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  stream->capture = capture;
  runtime().captures.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  Call call;
  *out = nullptr;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return Call::end(cudaErrorIllegalState);
  if (capture->origin.lock() != stream) return Call::end(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return Call::end(cudaErrorStreamCaptureWrongThread);
  }
  bool joined = true;
  for (const auto& [other_handle, other] : runtime().streams) {
    if (other->capture != capture) continue;
    other->capture = nullptr;
    joined = joined && (other == stream || other->num_joined == other->num_captured);
  }
  capture->ended = true;
  std::erase(runtime().captures, capture);
  if (capture->invalid) return Call::end(cudaErrorStreamCaptureInvalidated);
  if (!joined) return Call::end(cudaErrorStreamCaptureUnjoined);
  *out = new CUgraph_st{std::move(capture->nodes)};
  runtime().graphs.insert(*out);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  *status = !stream->capture           ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* out, cudaGraph_t graph, unsigned long long) {
  Call call;
  *out = nullptr;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (!runtime().graphs.contains(graph)) return Call::end(cudaErrorInvalidValue);
  *out = new CUgraphExec_st{std::make_shared<const std::vector<Task>>(graph->nodes)};
  runtime().graph_execs.insert(*out);
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  return Call::end(runtime().graph_execs.contains(graph) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
  Call call;
  if (call.error() != cudaSuccess) return Call::end(call.error());
  if (!runtime().graph_execs.contains(graph)) return Call::end(cudaErrorInvalidValue);
  const auto stream = find_stream(handle);
  if (!stream) return Call::end(cudaErrorInvalidResourceHandle);
  return Call::end(add_work(call.lock(), stream, [nodes = graph->nodes] { run_tasks(*nodes); }));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  Call call;
  if (runtime().graph_execs.erase(graph) == 0) return Call::end(cudaErrorInvalidValue);
  delete graph;
  return Call::end(call.error());
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Call call;
  if (runtime().graphs.erase(graph) == 0) return Call::end(cudaErrorInvalidValue);
  delete graph;
  return Call::end(call.error());
}
