// See cpu_backend.h.
#include "engine/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/host_communicator.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/kernel_sets.h"

namespace tgi {

// Threads of the rank. One each is always granted: ranks that take turns on a processor are slow
// but right, which is what they are good for on a small machine.
static int choose_num_threads(const CpuOptions& options) {
  const auto num_cpus = static_cast<int>(affinity_cpus().size());
  const int count = options.num_threads > 0
                        ? options.num_threads
                        : std::max(1, default_num_threads() / options.world_size);
  const int total = count * options.world_size;
  if (total <= num_cpus || options.may_oversubscribe) return count;
  if (count > 1) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} threads are asked for, but this process may use {} processors; "
                            "threads that wait for each other's processor only slow down",
                            total, num_cpus));
  }
  if (options.rank == 0) {
    log_warn("more ranks than processors, they take turns",
             {{"ranks", options.world_size}, {"processors", num_cpus}});
  }
  return count;
}

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  CpuOptions chosen = options;
  chosen.num_threads = choose_num_threads(options);
  KernelChooser& chooser = options.chooser == nullptr ? kernel_chooser() : *options.chooser;
  const ChosenKernels kernels = chooser.choose(options.isa);
  return std::make_unique<CpuDevice>(*kernels.kernels, chosen, kernels.left_out);
}

namespace {

// Ranks share the processors and the memory; what they exchange stays there.
class HostBackend : public Backend {
 public:
  int num_devices() override { return std::numeric_limits<int>::max(); }
  std::vector<std::unique_ptr<Communicator>> make_communicators(
      std::span<Device* const> ranks) override {
    return make_host_communicators(static_cast<int>(ranks.size()));
  }
  // There are kernels for all.
  void check_storage(const MatrixStorage& /*weights*/, DType /*kv_cache*/) const override {}
};

class CpuBackend final : public HostBackend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<Device> make_device(const DeviceOptions& options) override {
    return make_cpu_device({.isa = options.cpu_isa,
                            .num_threads = options.num_threads,
                            .pin_threads = options.pin_threads,
                            .rank = options.rank,
                            .world_size = options.world_size});
  }
};

class ReferenceBackend final : public HostBackend {
 public:
  std::string_view name() const override { return "reference"; }
  std::unique_ptr<Device> make_device(const DeviceOptions& options) override {
    return make_reference_device(options.world_size);
  }
};

}  // namespace

Backend& cpu_backend() {
  static CpuBackend backend;
  return backend;
}

Backend& reference_backend() {
  static ReferenceBackend backend;
  return backend;
}

}  // namespace tgi
