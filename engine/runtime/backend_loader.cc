#include "engine/runtime/backend_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/known_names.h"
#include "base/log.h"
#include "engine/cpu/cpu_backend.h"

namespace tgi {
namespace {

template <typename Function>
Function find_symbol(void* library, const char* symbol, const std::string& path) {
  void* address = ::dlsym(library, symbol);
  if (address == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("{} is not a backend of tgi: it has no function {}", path, symbol));
  }
  return reinterpret_cast<Function>(address);
}

// Never closed: its threads and the objects it made may outlive whoever asked for it.
Backend& load_plugin(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(Code::kNotFound,
                fmt::format("the backend's plugin can't be loaded: {}", ::dlerror()));
  }
  const int abi = find_symbol<int (*)()>(library, kBackendAbiSymbol, path)();
  if (abi != kBackendAbi) {
    throw Error(Code::kUnsupported,
                fmt::format("{} was built for backend interface {}, this program has {}; install "
                            "both from one release",
                            path, abi, kBackendAbi));
  }
  return *find_symbol<Backend* (*)()>(library, kBackendSymbol, path)();
}

Backend& cuda_backend() {
  static Backend& backend = load_plugin(plugin_path("cuda"));
  return backend;
}

Backend& choose_backend() {
  try {
    Backend& backend = cuda_backend();
    (void)backend.num_devices();
    return backend;
  } catch (const Error& error) {
    log_info("no GPU is used, the model runs on the processor", {{"reason", error.what()}});
    return cpu_backend();
  }
}

// Chosen once, so that the reason is told once and every load goes to the same place.
Backend& automatic_backend() {
  static Backend& backend = choose_backend();
  return backend;
}

constexpr auto kBackends = std::to_array<BackendRow>({
    {.name = "cpu", .is_plugin = false, .is_reference = false, .find = cpu_backend},
    {.name = "cuda", .is_plugin = true, .is_reference = false, .find = cuda_backend},
    {.name = "reference", .is_plugin = false, .is_reference = true, .find = reference_backend},
});

static_assert(std::ranges::equal(kBackends, kBackendNames, {}, &BackendRow::name),
              "base/known_names.h lists the backends that there are");

}  // namespace

std::span<const BackendRow> backends() {
  return kBackends;
}

Backend& find_backend(std::string_view name) {
  if (name == "auto") return automatic_backend();
  for (const BackendRow& row : kBackends) {
    if (row.name == name) return row.find();
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("backend \"{}\" is not known; there are: auto, {}", name,
                          fmt::join(kBackendNames, ", ")));
}

}  // namespace tgi
