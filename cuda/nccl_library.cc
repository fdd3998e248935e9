#include "cuda/nccl_library.h"

#include "cuda/library_symbols.h"

namespace tgi::cuda {
namespace {

constexpr const char* kFile = "libnccl.so.2";

NcclLibrary load() {
  void* const library = load_library(kFile, "package libnccl2, which several GPUs need");
  NcclLibrary out;
  find_symbol(library, kFile, "ncclGetErrorString", out.get_error_string);
  find_symbol(library, kFile, "ncclGetUniqueId", out.get_unique_id);
  find_symbol(library, kFile, "ncclCommInitRankConfig", out.comm_init_rank_config);
  find_symbol(library, kFile, "ncclCommGetAsyncError", out.comm_get_async_error);
  find_symbol(library, kFile, "ncclCommAbort", out.comm_abort);
  find_symbol(library, kFile, "ncclAllReduce", out.all_reduce);
  find_symbol(library, kFile, "ncclGroupStart", out.group_start);
  find_symbol(library, kFile, "ncclGroupEnd", out.group_end);
  return out;
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary library = load();
  return library;
}

}  // namespace tgi::cuda
