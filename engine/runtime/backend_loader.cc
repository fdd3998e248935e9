#include "engine/runtime/backend_loader.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"

namespace tgi {
namespace {

struct BackendRow {
  std::string_view name;
  std::unique_ptr<Device> (*make)(const BackendOptions& options);
};

constexpr std::array<BackendRow, 2> kBackends = {{
    {"cpu",
     [](const BackendOptions& options) {
       return make_cpu_device({.isa = options.cpu_isa,
                               .num_threads = options.num_threads,
                               .pin_threads = options.pin_threads});
     }},
    {"reference", [](const BackendOptions&) { return make_reference_device(); }},
}};

}  // namespace

std::unique_ptr<Device> make_device(const BackendOptions& options) {
  std::string known;
  for (const BackendRow& row : kBackends) {
    if (row.name == options.backend) return row.make(options);
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("backend \"{}\" is not known; there are: {}", options.backend, known));
}

}  // namespace tgi
