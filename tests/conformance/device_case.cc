// See device_case.h.
#include "tests/conformance/device_case.h"

#include <fmt/format.h>

#include "engine/cpu/cpu_backend.h"
#include "tests/cuda/emulated_backend.h"

namespace tgi {

std::vector<DeviceCase> device_cases() {
  std::vector<DeviceCase> cases;
  for (const std::string_view isa : available_isas()) {
    for (const int num_threads : {1, 2, 3}) {
      const CpuOptions options{
          .isa = std::string(isa), .num_threads = num_threads, .may_oversubscribe = true};
      cases.push_back({.name = fmt::format("cpu {} on {} threads", isa, num_threads),
                       .make = [options] { return make_cpu_device(options); },
                       .bit_group = "cpu"});
    }
  }
  for (const bool deterministic : {false, true}) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      DeviceOptions options;
      options.dtype = dtype;
      options.deterministic = deterministic;
      const std::string name = fmt::format("cuda emulated, {}{}", dtype_name(dtype),
                                           deterministic ? ", deterministic" : "");
      cases.push_back({.name = name,
                       .make = [options] { return cuda::emulated_backend().make_device(options); },
                       .bit_group = deterministic ? name : "",
                       .holds_matrix =
                           [dtype](const MatrixStorage& storage) {
                             return storage.quantization == Quantization::kNone &&
                                    storage.dtype == dtype;
                           },
                       .holds_cache =
                           [dtype](DType cache, int32_t head_dim) {
                             return cache == dtype && head_dim % 16 == 0;
                           }});
    }
  }
  return cases;
}

}  // namespace tgi
