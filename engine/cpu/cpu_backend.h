// Makes the devices of this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/backend.h"

namespace tgi {

class KernelChooser;

struct CpuOptions {
  std::string isa = "auto";  // "auto": the best this machine has; or one of available_isas()
  int num_threads = 0;  // of this rank; 0: its share of the physical cores this process may use
  bool pin_threads = false;        // each to one processor
  bool may_oversubscribe = false;  // more threads than processors: for tests
  int rank = 0;
  int world_size = 1;  // devices on these processors, each with its share of the memory
  KernelChooser* chooser = nullptr;  // (optional) in place of the process's: for tests
};

// Throws kInvalidArgument naming the known instruction sets or for more threads than processors (of
// one thread each there may be any number of ranks), kUnsupported when this machine lacks the
// instruction set asked for, or its kernels fail the trial that they stand before their first use
// (kernel_sets.h).
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options);

// Every op in plain loops in double precision, one thread: the definition. For tests and for
// looking into differences; slow.
std::unique_ptr<Device> make_reference_device(int world_size = 1);

// "cpu" and "reference".
Backend& cpu_backend();
Backend& reference_backend();

// The instruction sets that this machine announces, best first; "generic" is always last.
std::vector<std::string_view> available_isas();

// The kernels as they are, tried or not: for tests of the kernels themselves. Throws as
// make_cpu_device does.
struct KernelTable;
const KernelTable& find_kernels(std::string_view isa);

}  // namespace tgi
