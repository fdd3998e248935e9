// From the name of a backend to a device.
#pragma once

#include <memory>
#include <string>

#include "engine/device/backend.h"

namespace tgi {

struct BackendOptions {
  std::string backend;
  std::string cpu_isa;
  int32_t num_threads = 0;
  bool pin_threads = false;
};

// Throws kInvalidArgument naming the backends there are.
std::unique_ptr<Device> make_device(const BackendOptions& options);

}  // namespace tgi
