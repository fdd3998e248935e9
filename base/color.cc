#include "base/color.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tgi {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// In the order of Style.
constexpr std::array<std::string_view, 4> kStarts = {"\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};
constexpr std::string_view kEnd = "\x1b[0m";

}  // namespace

bool may_color(int fd) {
  if (!variable("NO_COLOR").empty()) return false;
  const std::string_view forced = variable("CLICOLOR_FORCE");
  if (!forced.empty() && forced != "0") return true;
  if (variable("CLICOLOR") == "0" || variable("TERM") == "dumb") return false;
  return ::isatty(fd) == 1;
}

bool knows_sequences() {
  const std::string_view terminal = variable("TERM");
  return !terminal.empty() && terminal != "dumb";
}

std::string styled(std::string_view text, Style style, bool on) {
  if (!on) return std::string(text);
  std::string out(kStarts[static_cast<size_t>(style)]);
  return out.append(text).append(kEnd);
}

}  // namespace tgi
