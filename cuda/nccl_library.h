// NCCL, loaded when several GPUs are to work together: a machine with one needs none of it.
#pragma once

#include <nccl.h>

#include <string>

namespace tgi::cuda {

// The functions of libnccl.so.2 that are used, under their names without the prefix.
struct NcclLibrary {
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
};

// Loaded at the first call. Throws kUnsupported saying what is missing.
const NcclLibrary& nccl();

}  // namespace tgi::cuda
