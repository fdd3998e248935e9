// See launch_record_verified in sample.h.
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/sample_task.cuh"
#include "cuda/launch.h"

namespace tgi::cuda {
namespace {

constexpr int kThreads = 128;

// One thread a sequence: that of its first row goes through the others while each draft was drawn.
__global__ void record_verified(const __grid_constant__ SampleLaunch launch) {
  wait_for_previous_kernel();
  launch_next_kernel();
  const auto first = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (first >= launch.num_rows) return;
  const LogitRow row = launch.rows[first];
  if (!row.is_verified || row.num_drafts > 0) return;
  for (int32_t i = first;; ++i) {
    const int32_t id = launch.out[i].id;
    record_token(launch.slots, row.slot, id);
    if (i + 1 == launch.num_rows) return;
    const LogitRow next = launch.rows[i + 1];
    if (next.num_drafts == 0 || launch.token_ids[next.row] != id) return;
  }
}

}  // namespace

void launch_record_verified(cudaStream_t stream, const SampleLaunch& launched) {
  const auto num_blocks = static_cast<unsigned>((launched.num_rows + kThreads - 1) / kThreads);
  launch(stream, {.grid = dim3(num_blocks), .block = dim3(kThreads), .overlaps_previous = true},
         record_verified, launched);
}

}  // namespace tgi::cuda
