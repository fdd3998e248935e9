// Which GPUs this build has machine code for. The one list is CMAKE_CUDA_ARCHITECTURES
// (sources.cmake has its default): what nvcc compiles and what is refused can't differ.
//
// Source: CUDA C++ Programming Guide, compute capabilities and binary compatibility.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tgi::cuda {

struct Architecture {
  int major = 0;
  int minor = 0;
  char variant = '\0';       // 'a': of that GPU alone; 'f': of its family, the same major number
  bool machine_code = true;  // runs as it is
  bool ptx = false;          // is compiled by the driver for what comes later
};

// "80-real;90a-real": CMake's form, parted by semicolons or commas. Throws kInvalidArgument naming
// the entry that is none ("native", "all").
std::vector<Architecture> parse_architectures(std::string_view list);

bool runs_on(const Architecture& built, int major, int minor);

// The architectures that this build has code for.
const std::vector<Architecture>& built_architectures();

// Throws kUnsupported naming the GPU, its compute capability and what this build is for.
void check_architecture(std::string_view gpu, int major, int minor);

}  // namespace tgi::cuda
