// See device_case.h.
#include "tests/conformance/device_case.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/runtime/backend_loader.h"
#include "tests/catch.h"
#include "tests/cuda/emulated_backend.h"
#include "tests/real_gpu.h"

namespace tgi {
namespace {

void add_cuda(Backend& backend, const std::string& kind, std::vector<DeviceCase>& cases) {
  for (const bool deterministic : {false, true}) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      // Both types are the same code: a sanitizer sees it once as it is, once deterministic.
      if (kUnderSanitizers && deterministic == (dtype == DType::kBF16)) continue;
      DeviceOptions options;
      options.dtype = dtype;
      options.deterministic = deterministic;
      const std::string name =
          fmt::format("{}, {}{}", kind, dtype_name(dtype), deterministic ? ", deterministic" : "");
      cases.push_back(
          {.name = name,
           .make = [&backend, options] { return backend.make_device(options); },
           .bit_group = deterministic ? name : "",
           .holds_matrix =
               [dtype](const MatrixStorage& storage) {
                 if (storage.quantization == Quantization::kNone) return storage.dtype == dtype;
                 // The reference rounds x where it rounds weights: beside bf16 that is little.
                 return storage.stored || dtype == DType::kBF16;
               },
           .holds_cache = [dtype](DType cache,
                                  int32_t head_dim) { return cache == dtype && head_dim <= 512; },
           .holds_latents = [dtype](DType cache) { return cache == dtype; },
           .takes_encoders = false,
           .is_slow = true});
    }
  }
}

// The plugin with a GPU behind it; null, saying so once, where there is none.
Backend* real_gpu() {
  static Backend* const backend = []() -> Backend* {
    try {
      Backend& cuda = find_backend("cuda");
      (void)cuda.num_devices();
      return &cuda;
    } catch (const Error& error) {
      fmt::print(stderr, "skipped on a GPU: {}\n", error.what());
      return nullptr;
    }
  }();
  return backend;
}

}  // namespace

std::vector<DeviceCase> device_cases() {
  std::vector<DeviceCase> cases;
  // What a machine with a GPU is there for: the others have been tried where there is none.
  if (is_for_real_gpu()) {
    Backend* const gpu = real_gpu();
    if (gpu == nullptr) throw Error(Code::kUnsupported, "there is no GPU to be tried");
    add_cuda(*gpu, "cuda", cases);
    return cases;
  }
  for (const std::string_view isa : available_isas()) {
    for (const int num_threads : {1, 2, 3}) {
      // How work is cut is the same code for all instruction sets; and two threads cut it as three
      // do, but for the place.
      if (num_threads > 1 && isa != available_isas().front()) continue;
      if (kUnderSanitizers && num_threads == 2) continue;
      const CpuOptions options{
          .isa = std::string(isa), .num_threads = num_threads, .may_oversubscribe = true};
      cases.push_back({.name = fmt::format("cpu {} on {} threads", isa, num_threads),
                       .make = [options] { return make_cpu_device(options); },
                       .bit_group = "cpu"});
    }
  }
#ifndef TGI_WITHOUT_EMULATED_GPU
  add_cuda(cuda::emulated_backend(), "cuda emulated", cases);
#endif
  if (Backend* const gpu = real_gpu()) add_cuda(*gpu, "cuda", cases);
  return cases;
}

}  // namespace tgi
