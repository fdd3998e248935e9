#include "daemon/probe.h"

#include <chrono>
#include <string>
#include <vector>

#include "base/files/paths.h"
#include "base/log.h"
#include "engine/device/backend.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/matmul_probe.h"

namespace tgi::daemon {
namespace {

using ipc::OrderedJson;

constexpr std::chrono::milliseconds kPerMatmul{500};

OrderedJson left_out_json(const std::vector<LeftOutKernels>& left_out) {
  OrderedJson out = OrderedJson::array();
  for (const LeftOutKernels& one : left_out) {
    out.push_back({{"isa", one.isa}, {"kernel", one.kernel}, {"reason", one.reason}});
  }
  return out;
}

OrderedJson probe_backend(const BackendRow& row, const ModelOptions& options) {
  OrderedJson out = {{"name", row.name},
                     {"plugin", row.is_plugin ? plugin_path(std::string(row.name)) : ""}};
  try {
    Backend& backend = row.find();
    const int num_devices = backend.num_devices();
    const DType dtype = backend.automatic_dtype(DType::kBF16);
    const MatmulSpeed speed =
        measure_matmul(backend, dtype, device_options(options, dtype), kPerMatmul);
    out["found"] = true;
    out["device"] = speed.device.description;
    out["isa"] = speed.device.isa;
    out["left_out"] = left_out_json(speed.device.left_out);
    if (row.is_plugin) out["num_devices"] = num_devices;
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

OrderedJson probe_machine(std::string_view commit, const ModelOptions& options) {
  set_log_level(LogLevel::kOff);
  OrderedJson out = {{"version", ipc::kVersion},
                     {"commit", commit},
                     {"backend_abi", kBackendAbi},
                     {"backends", OrderedJson::array()}};
  for (const BackendRow& row : backends()) {
    if (!row.is_reference) out["backends"].push_back(probe_backend(row, options));
  }
  return out;
}

}  // namespace tgi::daemon
