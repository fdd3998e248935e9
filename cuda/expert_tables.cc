#include "cuda/expert_tables.h"

#include <algorithm>

#include "base/error.h"
#include "cuda/cuda_matrix.h"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

const CudaMatrix& expert_matrix(const ExpertWeight& expert) {
  return static_cast<const CudaMatrix&>(*expert.w);
}

ExpertPointers pointers_of(const ExpertWeight& expert) {
  return {.w = expert_matrix(expert).memory.data(),
          .bias = expert.bias == nullptr ? nullptr : expert.bias->as<const float>()};
}

bool is_same(const ExpertPointers& a, const ExpertPointers& b) {
  return a.w == b.w && a.bias == b.bias;
}

}  // namespace

void ExpertTables::add_chunk(size_t num_entries) {
  const size_t size_bytes = num_entries * sizeof(ExpertPointers);
  chunks_.push_back({.on_device = allocate_device(size_bytes, "tables of experts"),
                     .pinned = allocate_pinned(size_bytes, "tables of experts"),
                     .num_entries = num_entries,
                     .num_used = 0});
}

void ExpertTables::reset(size_t num_entries) {
  tables_.clear();
  chunks_.clear();
  if (num_entries > 0) add_chunk(num_entries);
}

ExpertTables::Table ExpertTables::make(cudaStream_t stream, std::span<const ExpertWeight> experts) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "making a table of experts");
  TGI_CHECK(status == cudaStreamCaptureStatusNone);
  const CudaMatrix& first = expert_matrix(experts.front());
  for (const ExpertWeight& expert : experts) {
    const CudaMatrix& w = expert_matrix(expert);
    TGI_CHECK(w.rows == first.rows && w.cols == first.cols && w.stride == first.stride);
  }
  if (chunks_.empty() || chunks_.back().num_entries - chunks_.back().num_used < experts.size())
    add_chunk(experts.size());
  Chunk& chunk = chunks_.back();
  auto* const pinned = static_cast<ExpertPointers*>(chunk.pinned.data()) + chunk.num_used;
  auto* const on_device = static_cast<ExpertPointers*>(chunk.on_device.data()) + chunk.num_used;
  chunk.num_used += experts.size();
  std::ranges::transform(experts, pinned, pointers_of);
  check(cudaMemcpyAsync(on_device, pinned, experts.size() * sizeof(ExpertPointers),
                        cudaMemcpyHostToDevice, stream),
        "copying a table of experts");
  return {.on_device = on_device, .pinned = {pinned, experts.size()}};
}

const ExpertPointers* ExpertTables::table_of(cudaStream_t stream,
                                             std::span<const ExpertWeight> experts) {
  Table& table = tables_[experts.data()];
  // Of a model that is gone another one may have got the place.
  const bool is_made = std::ranges::equal(experts, table.pinned, is_same, pointers_of);
  if (!is_made) table = make(stream, experts);
  return table.on_device;
}

}  // namespace tgi::cuda
