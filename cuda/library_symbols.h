// Libraries of NVIDIA that are loaded when they are needed.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace tgi::cuda {

// Stays loaded. Throws kUnsupported with the package that has it.
inline void* load_library(const std::string& file, const std::string& package) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("{} (of {}) can't be loaded: {}", file, package, ::dlerror()));
  }
  return library;
}

template <typename Function>
void find_symbol(void* library, const std::string& file, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, name));
  if (out == nullptr)
    throw Error(Code::kUnsupported,
                fmt::format("{} has no function {}: it is too old", file, name));
}

}  // namespace tgi::cuda
