// From the name of a backend to what makes its devices. The cpu backend is part of the executable,
// others are plugins (libtgi-NAME.so) which are loaded when first asked for and never unloaded.
#pragma once

#include <span>
#include <string_view>

#include "engine/device/backend.h"

namespace tgi {

struct BackendRow {
  std::string_view name;
  bool is_plugin;     // libtgi-NAME.so
  bool is_reference;  // only to compare with
  Backend& (*find)();
};

// As kBackendNames. `find` throws what find_backend throws.
std::span<const BackendRow> backends();

// "auto": cuda where the plugin, a driver and a device are there, else cpu, with one log line that
// says why. Throws kInvalidArgument naming the backends there are, kNotFound when the plugin isn't
// installed, kUnsupported when it is of another build.
Backend& find_backend(std::string_view name);

}  // namespace tgi
