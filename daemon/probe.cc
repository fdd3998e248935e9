#include "daemon/probe.h"

#include <chrono>
#include <string>

#include "base/log.h"
#include "base/paths.h"
#include "engine/device/backend.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/matmul_probe.h"

namespace tgi::daemon {
namespace {

using ipc::OrderedJson;

constexpr std::chrono::milliseconds kPerMatmul{500};

OrderedJson probe_backend(const std::string& name) {
  const bool is_plugin = name != "cpu";
  OrderedJson out = {{"name", name}, {"plugin", is_plugin ? plugin_path(name) : ""}};
  try {
    Backend& backend = find_backend(name);
    const int num_devices = backend.num_devices();
    const DType dtype = backend.automatic_dtype(DType::kBF16);
    const MatmulSpeed speed =
        measure_matmul(backend, dtype, {.dtype = dtype, .cache_dir = cache_dir()}, kPerMatmul);
    out["found"] = true;
    out["device"] = speed.device.description;
    out["isa"] = speed.device.isa;
    if (is_plugin) out["num_devices"] = num_devices;
    out["num_threads"] = speed.device.num_threads;
    out["memory_bytes"] = speed.device.memory_bytes;
    out["dtype"] = speed.dtype;
    out["prompt_flops_per_s"] = speed.prompt_flops_per_s;
    out["decode_bytes_per_s"] = speed.decode_bytes_per_s;
  } catch (const std::exception& error) {
    out["found"] = false;
    out["reason"] = error.what();
  }
  return out;
}

}  // namespace

OrderedJson probe_machine(std::string_view commit) {
  set_log_level(LogLevel::kOff);
  OrderedJson out = {{"version", ipc::kVersion},
                     {"commit", commit},
                     {"backend_abi", kBackendAbi},
                     {"backends", OrderedJson::array()}};
  for (const char* name : {"cpu", "cuda"}) out["backends"].push_back(probe_backend(name));
  return out;
}

}  // namespace tgi::daemon
