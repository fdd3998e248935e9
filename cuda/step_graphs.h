// Captured steps: two graphs for each bucket of decode rows, with adapters and without, because
// what may be drawn is known later than what is to be computed.
#pragma once

#include <cuda_runtime.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace tgi::cuda {

// The rows a step of `rows` decode rows is padded to: 1, 2, 4, 8, then multiples of 8 up to 64, of
// 16 up to 256, of 64 beyond; never more than max_rows. 0: more than may be captured.
int32_t graph_bucket(int32_t rows, int32_t max_rows);

enum class StepPart : uint8_t { kForward, kSampling };

// What was captured: steps without adapters launch nothing for them.
struct StepKind {
  int32_t bucket = 0;  // 0: none
  bool has_adapters = false;
  auto operator<=>(const StepKind&) const = default;
};

class StepGraphs {
 public:
  StepGraphs() = default;
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Captures what the two launch on the stream as the graphs of (owner, kind), unless they are
  // there. `owner` is whose launches these are: graphs of another are dropped. Throws kDeviceLost.
  void capture(cudaStream_t stream,
               const void* owner,
               StepKind kind,
               const std::function<void()>& launch_forward,
               const std::function<void()>& launch_sampling);

  bool has(const void* owner, StepKind kind) const {
    return owner == owner_ && graphs_.contains(kind);
  }

  // Launches a graph of the owner's that there is. Throws kDeviceLost.
  void run(cudaStream_t stream, StepKind kind, StepPart part);

  // The largest of the buckets for 1 to max_rows rows that has no graphs of this owner's; 0: none.
  int32_t largest_missing(const void* owner, int32_t max_rows, bool has_adapters) const;
  std::vector<int32_t> buckets() const;  // ascending; of steps without adapters
  void clear();

 private:
  const void* owner_ = nullptr;
  struct Graphs {
    cudaGraphExec_t forward = nullptr;
    cudaGraphExec_t sampling = nullptr;
  };
  std::map<StepKind, Graphs> graphs_;
};

}  // namespace tgi::cuda
