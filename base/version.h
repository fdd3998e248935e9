// The version of both programs; CMakeLists.txt, which names the package after it, has the same (a
// test compares).
#pragma once

#include <string_view>

namespace tgi {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace tgi
