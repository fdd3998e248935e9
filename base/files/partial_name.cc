#include "base/files/partial_name.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/types.h>

#include <cerrno>
#include <charconv>
#include <system_error>

namespace tgi {

namespace fs = std::filesystem;

std::string partial_prefix(const fs::path& path) {
  return fmt::format(".{}.partial-", path.filename().string());
}

void remove_partial_leftovers(const fs::path& parent, const std::string& prefix) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    pid_t pid = 0;
    const char* begin = name.data() + prefix.size();
    const auto parsed = std::from_chars(begin, name.data() + name.size(), pid);
    const bool is_dead = parsed.ec == std::errc() && *parsed.ptr == '-' && pid > 0 &&
                         ::kill(pid, 0) != 0 && errno == ESRCH;
    if (is_dead) fs::remove_all(entry.path(), error);
  }
}

}  // namespace tgi
