// The devices under test. A plugin joins by a line in device_cases(); all tests then run on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/backend.h"

namespace tgi {

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  // Devices of one group promise each other the same bits.
  std::string bit_group;
};

// The CPU device with every instruction set of this machine, on one, two and three threads.
std::vector<DeviceCase> device_cases();

}  // namespace tgi
