#include "cuda/step_graphs.h"

#include <algorithm>

#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

cudaGraphExec_t captured(cudaStream_t stream, const std::function<void()>& launch) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a step");
  cudaGraph_t graph = nullptr;
  try {
    launch();
  } catch (...) {
    (void)cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "capturing a step");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  check(status, "preparing a captured step");
  return executable;
}

}  // namespace

int32_t graph_bucket(int32_t rows, int32_t max_rows) {
  if (rows < 1 || rows > max_rows) return 0;
  const auto up = [rows](int32_t to) { return (rows + to - 1) / to * to; };
  int32_t bucket = rows <= 1     ? 1
                   : rows <= 2   ? 2
                   : rows <= 4   ? 4
                   : rows <= 64  ? up(8)
                   : rows <= 256 ? up(16)
                                 : up(64);
  return std::min(bucket, max_rows);
}

StepGraphs::~StepGraphs() {
  clear();
}

void StepGraphs::clear() {
  for (const auto& [kind, graphs] : graphs_) {
    (void)cudaGraphExecDestroy(graphs.forward);
    (void)cudaGraphExecDestroy(graphs.sampling);
  }
  graphs_.clear();
}

void StepGraphs::capture(cudaStream_t stream,
                         const void* owner,
                         StepKind kind,
                         const std::function<void()>& launch_forward,
                         const std::function<void()>& launch_sampling) {
  if (owner != owner_) {
    check(cudaStreamSynchronize(stream), "waiting for steps of another model");
    clear();
    owner_ = owner;
  }
  if (graphs_.contains(kind)) return;
  Graphs graphs{.forward = captured(stream, launch_forward), .sampling = nullptr};
  try {
    graphs.sampling = captured(stream, launch_sampling);
  } catch (...) {
    (void)cudaGraphExecDestroy(graphs.forward);
    throw;
  }
  graphs_.emplace(kind, graphs);
}

void StepGraphs::run(cudaStream_t stream, StepKind kind, StepPart part) {
  const Graphs& graphs = graphs_.at(kind);
  check(cudaGraphLaunch(part == StepPart::kForward ? graphs.forward : graphs.sampling, stream),
        "replaying a captured step");
}

int32_t StepGraphs::largest_missing(const void* owner, int32_t max_rows, bool has_adapters) const {
  // A bucket is the one of its own number of rows.
  for (int32_t rows = max_rows; rows > 0; --rows) {
    if (graph_bucket(rows, max_rows) != rows) continue;
    if (!has(owner, {.bucket = rows, .has_adapters = has_adapters})) return rows;
  }
  return 0;
}

std::vector<int32_t> StepGraphs::buckets() const {
  std::vector<int32_t> out;
  for (const auto& [kind, graphs] : graphs_) {
    if (!kind.has_adapters) out.push_back(kind.bucket);
  }
  return out;
}

}  // namespace tgi::cuda
