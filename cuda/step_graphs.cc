#include "cuda/step_graphs.h"

#include <algorithm>

#include "cuda/launch.h"

namespace tgi::cuda {

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
  for (const auto& [bucket, graph] : graphs_) (void)cudaGraphExecDestroy(graph);
  graphs_.clear();
}

void StepGraphs::run(cudaStream_t stream,
                     const void* owner,
                     int32_t bucket,
                     const std::function<void()>& launch) {
  if (owner != owner_) {
    check(cudaStreamSynchronize(stream), "waiting for steps of another model");
    clear();
    owner_ = owner;
  }
  auto it = graphs_.find(bucket);
  if (it == graphs_.end()) {
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
    it = graphs_.emplace(bucket, executable).first;
  }
  check(cudaGraphLaunch(it->second, stream), "replaying a captured step");
}

std::vector<int32_t> StepGraphs::buckets() const {
  std::vector<int32_t> out;
  for (const auto& [bucket, graph] : graphs_) out.push_back(bucket);
  return out;
}

}  // namespace tgi::cuda
