// The demo model that is built into the executable: a toy to see the system work with no network.
// See assets/README.md.
#pragma once

#include <memory>
#include <string_view>

#include "base/files/file_source.h"

namespace tgi {

inline constexpr std::string_view kDemoModel = "demo";

std::unique_ptr<FileSource> open_demo_model();

}  // namespace tgi
