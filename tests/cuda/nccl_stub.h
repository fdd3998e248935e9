// NCCL between emulated GPUs, and what it does badly: steered by tests, counted for them.
//
// Calls return before their work is on the stream, which it is when ncclCommGetAsyncError no longer
// says that the communicator is in progress. As of NCCL 2.26, aborting waits until no captured step
// holds the communicator.
#pragma once

#include <nccl.h>

#include <cstdint>

namespace tgi::cuda {

struct NcclFaults {
  int polls_in_progress = 2;     // of the asynchronous error, after each call
  int stuck_rank = -1;           // its calls are in progress for ever
  int hanging_rank = -1;         // its all-reduces never end on the GPU
  int64_t good_all_reduces = 0;  // of each rank, before the two above begin
  int failing_rank = -1;         // its asynchronous error is `error`
  ncclResult_t error = ncclSuccess;
};
void set_nccl_faults(const NcclFaults& faults);

struct NcclCounts {
  int64_t num_all_reduces = 0;  // that were run
  int64_t num_alive = 0;        // communicators
  int64_t num_misused = 0;      // calls of a communicator in progress, or of one that is gone
  int64_t num_hung = 0;         // aborts that a captured step made wait
};
NcclCounts nccl_counts();

}  // namespace tgi::cuda
