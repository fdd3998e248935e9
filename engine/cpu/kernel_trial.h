// Tries the kernels of an instruction set on small problems before anybody's model runs on them, in
// a child process: one that faults, hangs or computes something else ends the child alone. (A
// processor may lack what it announces, a hypervisor may not save its registers, a compiler may
// have made a mistake: then the next instruction set has to do.)
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "engine/cpu/kernel_checks.h"
#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

struct KernelFault {
  std::string kernel;  // and what it was tried with: "matmul_many of bf16, 33 rows"
  std::string reason;  // "illegal instruction (SIGILL)"
};

struct TrialLimits {
  std::chrono::milliseconds processor_time{2000};  // a hundred times what is needed
  std::chrono::milliseconds time{60000};           // on a machine that is busy otherwise
};

// The first fault, or nothing. Safe while other threads run: between fork and its end the child
// runs kernels and makes system calls, no more. It holds none of this process's files, dies with
// this thread, and leaves no core file. A child that can't be started is a fault too, as an
// unknown kernel may end the process.
std::optional<KernelFault> try_kernels(const KernelChecks& checks,
                                       const KernelTable& kernels,
                                       const TrialLimits& limits = {});

}  // namespace tgi
