// See cpu_backend.h. The instruction set is chosen here, once.
#include "engine/cpu/cpu_backend.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "engine/cpu/amx.h"
#include "engine/cpu/cpu_device.h"
#include "engine/cpu/host_communicator.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {
namespace {

struct IsaRow {
  std::string_view name;
  bool (*available)();  // of processor and operating system
  const KernelTable& (*kernels)();
};

#if defined(__x86_64__)
// clang 14's __builtin_cpu_supports does not know this one. Intel SDM, CPUID leaf 1, ECX bit 29.
bool has_f16c() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1U << 29)) != 0;
}
#endif

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c();
}
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         has_avx2();
}
bool has_avx512vnni() {
  return has_avx512() && __builtin_cpu_supports("avx512vnni") != 0;
}
bool has_avx512bf16() {
  return has_avx512vnni() && __builtin_cpu_supports("avx512bf16") != 0;
}
#endif

// The first that is available is "auto".
constexpr IsaRow kIsas[] = {
#if defined(__x86_64__)
    {"amx", [] { return has_avx512bf16() && amx_available(); }, amx_kernels},
    {"avx512bf16", has_avx512bf16, avx512bf16_kernels},
    {"avx512vnni", has_avx512vnni, avx512vnni_kernels},
    {"avx512", has_avx512, avx512_kernels},
    {"avx2", has_avx2, avx2_kernels},
#endif
    {"generic", [] { return true; }, generic_kernels},
};

}  // namespace

std::vector<std::string_view> available_isas() {
  std::vector<std::string_view> names;
  for (const IsaRow& row : kIsas) {
    if (row.available()) names.push_back(row.name);
  }
  return names;
}

const KernelTable& find_kernels(std::string_view isa) {
  std::vector<std::string_view> known = {"auto"};
  for (const IsaRow& row : kIsas) {
    known.push_back(row.name);
    if (isa != "auto" && isa != row.name) continue;
    if (row.available()) return row.kernels();
    if (isa == row.name) {
      throw Error(Code::kUnsupported,
                  fmt::format("instruction set {} is not there on this machine, which has {}", isa,
                              fmt::join(available_isas(), ", ")));
    }
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("instruction set \"{}\" is unknown, expected one of {}", isa,
                          fmt::join(known, ", ")));
}

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
  return std::make_unique<CpuDevice>(find_kernels(options.isa), chosen);
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
  void check_storage(const MatrixStorage& /*weights*/, DType kv_cache) const override {
    if (kv_cache != DType::kF8E4M3) return;
    throw Error(
        Code::kUnsupported,
        fmt::format(
            "a KV cache of f8e4m3: the {} backend takes f32, bf16 or f16; see --kv-cache-dtype",
            name()));
  }
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
