// Names of functions, also of those that the dynamic linker does not know.
#pragma once

#include <string>

namespace tgi::cuda_emulation {

// Demangled; file+0xoffset when the file was stripped.
std::string symbol_name(const void* function);

}  // namespace tgi::cuda_emulation
