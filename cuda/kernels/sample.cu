// See sample.h. Three kernels, each with a grid that follows from the number of rows and the
// vocabulary alone: scan_rows reads all logits once and ends all plain rows but for a handful of
// numbers; bin_rows and filter_rows leave rows without filters and alternatives alone, and read the
// others once more each.
#include "cuda/kernels/sample.h"

#include <algorithm>
#include <cstddef>

#include "cuda/kernels/sample_task.cuh"

namespace tgi::cuda {
namespace {

// The CUDA blocks of a kernel that most rows have no use for.
constexpr int32_t kListBlocks = 1024;

int32_t chunks_of(int32_t vocab_size) {
  return (vocab_size + kChunkIds - 1) / kChunkIds;
}

// One array after another, each at a multiple of 256 bytes.
class Workspace {
 public:
  explicit Workspace(void* at) : at_(static_cast<std::byte*>(at)) {}

  template <typename T>
  void take(int64_t count, T*& out) {
    out = at_ == nullptr ? nullptr : reinterpret_cast<T*>(at_ + size_bytes_);
    size_bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 255) / 256 * 256;
  }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  std::byte* at_;
  int64_t size_bytes_ = 0;
};

int64_t place_arrays(void* workspace, int64_t num_rows, SampleTask& task) {
  Workspace memory(workspace);
  memory.take(num_rows, task.states);
  memory.take(num_rows, task.counters);
  memory.take(num_rows * 2 * kNumBins, task.bins);
  memory.take(num_rows * task.num_chunks, task.chunks);
  memory.take(num_rows * kMaxListed, task.listed);
  memory.take(num_rows * kMaxListedTops, task.listed_tops);
  return memory.size_bytes();
}

}  // namespace

int64_t sample_workspace_bytes(int32_t max_rows, int32_t vocab_size) {
  SampleTask task;
  task.num_chunks = chunks_of(vocab_size);
  return place_arrays(nullptr, std::min(max_rows, kMaxSampleRows), task);
}

void launch_sample(cudaStream_t stream, const SampleLaunch& launch) {
  SampleTask task;
  task.num_chunks = chunks_of(launch.slots.vocab_size);
  task.aligned = launch.stride % 4 == 0 && reinterpret_cast<uintptr_t>(launch.logits) % 16 == 0;
  for (int32_t begin = 0; begin < launch.num_rows; begin += kMaxSampleRows) {
    task.launch = launch;
    task.launch.num_rows = std::min(launch.num_rows - begin, kMaxSampleRows);
    task.launch.rows += begin;
    task.launch.logits += begin * launch.stride;
    task.launch.out += begin;
    place_arrays(launch.workspace, task.launch.num_rows, task);
    const auto blocks_per_row =
        static_cast<uint32_t>(std::clamp(kListBlocks / task.launch.num_rows, 1, task.num_chunks));
    launch_scan_rows(stream, task);
    launch_bin_rows(stream, task, blocks_per_row);
    launch_filter_rows(stream, task, blocks_per_row);
  }
}

}  // namespace tgi::cuda
