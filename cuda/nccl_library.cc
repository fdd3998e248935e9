#include "cuda/nccl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"

namespace tgi::cuda {
namespace {

constexpr const char* kFile = "libnccl.so.2";

template <typename Function>
void find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  if (out == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("{} has no function {}: it is too old for several GPUs", kFile, name));
  }
}

NcclLibrary load() {
  void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("several GPUs need NCCL (package libnccl2), which can't be loaded: {}",
                            ::dlerror()));
  }
  NcclLibrary out;
  find(library, "ncclGetErrorString", out.get_error_string);
  find(library, "ncclGetUniqueId", out.get_unique_id);
  find(library, "ncclCommInitRankConfig", out.comm_init_rank_config);
  find(library, "ncclCommGetAsyncError", out.comm_get_async_error);
  find(library, "ncclCommAbort", out.comm_abort);
  find(library, "ncclAllReduce", out.all_reduce);
  find(library, "ncclGroupStart", out.group_start);
  find(library, "ncclGroupEnd", out.group_end);
  return out;
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary library = load();
  return library;
}

}  // namespace tgi::cuda
