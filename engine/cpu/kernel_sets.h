// The instruction sets that there are kernels for, and which of them a process uses: the best that
// the processor announces and whose kernels stand their trial (kernel_trial.h).
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cpu/kernel_trial.h"
#include "engine/cpu/kernels/kernel_table.h"
#include "engine/device/backend.h"

namespace tgi {

struct KernelSet {
  std::string_view name;
  bool (*available)();  // of processor and operating system
  const KernelTable& (*kernels)();
};

// Best first; the last is "generic", which is there on every machine and is what the others are
// compared with.
std::span<const KernelSet> kernel_sets();

struct ChosenKernels {
  const KernelTable* kernels = nullptr;
  std::vector<LeftOutKernels> left_out;  // better ones, that failed
};

// Thread-safe. Each set is tried once, when it is first to be used.
class KernelChooser {
 public:
  explicit KernelChooser(std::span<const KernelSet> sets, const TrialLimits& limits = {})
      : sets_(sets), limits_(limits) {}

  // "auto", or the name of a set. Throws kInvalidArgument naming the known ones, kUnsupported when
  // this machine lacks the one asked for, or when its kernels fail here: then with the kernel and
  // what it did.
  ChosenKernels choose(std::string_view isa);

 private:
  // REQUIRES: mutex_ is held.
  const std::optional<KernelFault>& fault_of(const KernelSet& set);

  const std::span<const KernelSet> sets_;
  const TrialLimits limits_;
  std::mutex mutex_;
  std::map<std::string_view, std::optional<KernelFault>> faults_;  // of the sets tried so far
};

// The chooser of this process, over kernel_sets().
KernelChooser& kernel_chooser();

}  // namespace tgi
