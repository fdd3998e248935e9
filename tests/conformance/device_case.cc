// See device_case.h.
#include "tests/conformance/device_case.h"

#include <fmt/format.h>

#include "engine/cpu/cpu_backend.h"

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
  return cases;
}

}  // namespace tgi
