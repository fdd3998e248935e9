// See kernel_sets.h.
#include "engine/cpu/kernel_sets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/known_names.h"
#include "base/log.h"
#include "engine/cpu/amx.h"
#include "engine/cpu/cpu_backend.h"

namespace tgi {
namespace {

#if defined(__x86_64__)
// What __builtin_cpu_supports of some compilers does not know: Intel SDM, CPUID.
struct CpuId {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  // All 0 where there is no such leaf.
  CpuId(unsigned leaf, unsigned subleaf) { __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d); }
};
bool has_f16c() {
  return (CpuId(1, 0).c & (1U << 29)) != 0;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c();
}
bool has_avxvnni() {
  return has_avx2() && (CpuId(7, 1).a & (1U << 4)) != 0;
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
constexpr KernelSet kSets[] = {
#if defined(__x86_64__)
    {"amx", [] { return has_avx512bf16() && amx_available(); }, amx_kernels},
    {"avx512bf16", has_avx512bf16, avx512bf16_kernels},
    {"avx512vnni", has_avx512vnni, avx512vnni_kernels},
    {"avx512", has_avx512, avx512_kernels},
    {"avxvnni", has_avxvnni, avxvnni_kernels},
    {"avx2", has_avx2, avx2_kernels},
#endif
    {"generic", [] { return true; }, generic_kernels},
};

#if defined(__x86_64__)
static_assert(std::ranges::equal(kSets, kCpuIsaNames, {}, &KernelSet::name),
              "base/known_names.h lists the instruction sets that there are kernels for");
#endif

std::vector<std::string_view> names_of(std::span<const KernelSet> sets, bool only_available) {
  std::vector<std::string_view> names;
  for (const KernelSet& set : sets) {
    if (!only_available || set.available()) names.push_back(set.name);
  }
  return names;
}

const KernelSet& find_set(std::span<const KernelSet> sets, std::string_view isa) {
  for (const KernelSet& set : sets) {
    if (isa != set.name) continue;
    if (set.available()) return set;
    throw Error(Code::kUnsupported,
                fmt::format("instruction set {} is not available on this machine, which has {}",
                            isa, fmt::join(names_of(sets, true), ", ")));
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("instruction set \"{}\" is unknown, expected one of auto, {}", isa,
                          fmt::join(names_of(sets, false), ", ")));
}

}  // namespace

std::span<const KernelSet> kernel_sets() {
  return kSets;
}

std::vector<std::string_view> available_isas() {
  return names_of(kSets, true);
}

const KernelTable& find_kernels(std::string_view isa) {
  return (isa == "auto" ? find_set(kSets, available_isas().front()) : find_set(kSets, isa))
      .kernels();
}

const std::optional<KernelFault>& KernelChooser::fault_of(const KernelSet& set) {
  const KernelSet& reference = sets_.back();
  if (const auto known = faults_.find(set.name); known != faults_.end()) return known->second;
  std::optional<KernelFault> fault;
  if (set.name != reference.name) {
    fault = try_kernels(KernelChecks(reference.kernels()), set.kernels(), limits_);
  }
  return faults_.emplace(set.name, std::move(fault)).first->second;
}

ChosenKernels KernelChooser::choose(std::string_view isa) {
  const std::lock_guard lock(mutex_);
  if (isa != "auto") {
    const KernelSet& set = find_set(sets_, isa);
    if (const auto& fault = fault_of(set)) {
      throw Error(Code::kUnsupported,
                  fmt::format("instruction set {} does not work on this machine: {}: {}; leave "
                              "--cpu-isa out for the best that does",
                              isa, fault->kernel, fault->reason));
    }
    return {.kernels = &set.kernels(), .left_out = {}};
  }
  ChosenKernels out;
  for (const KernelSet& set : sets_) {
    if (!set.available()) continue;
    const bool is_known = faults_.contains(set.name);
    const auto& fault = fault_of(set);
    if (!fault) {
      out.kernels = &set.kernels();
      break;
    }
    out.left_out.push_back({std::string(set.name), fault->kernel, fault->reason});
    if (!is_known) {
      log_warn("instruction set left out: it does not work on this machine",
               {{"isa", set.name}, {"kernel", fault->kernel}, {"reason", fault->reason}});
    }
  }
  return out;
}

KernelChooser& kernel_chooser() {
  static KernelChooser chooser(kSets);
  return chooser;
}

}  // namespace tgi
