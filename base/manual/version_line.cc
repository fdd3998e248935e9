#include "base/manual/version_line.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files/paths.h"
#include "base/version.h"

namespace tgi {

std::string version_line(std::string_view program, std::string_view commit) {
  std::string out = fmt::format("{} {}", program, kVersion);
  if (!commit.empty()) out += fmt::format(" ({})", commit);
  out += " cpu";
  std::error_code error;
  if (std::filesystem::exists(plugin_path("cuda"), error)) out += " cuda";
  return out;
}

}  // namespace tgi
