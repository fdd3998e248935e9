#include "base/files/partial_name.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "base/decimal_size.h"
#include "base/error.h"

namespace tgi {

namespace fs = std::filesystem;

namespace {

// ".NAME.partial-"
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

}  // namespace

std::string partial_pattern(const fs::path& path) {
  const fs::path parent = path.parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) {
    throw Error(error.value() == ENOSPC || error.value() == EDQUOT ? Code::kOutOfMemory
                                                                   : Code::kInvalidArgument,
                fmt::format("folder {}: {}", parent.string(), std::strerror(error.value())));
  }
  const std::string prefix = partial_prefix(path);
  remove_partial_leftovers(parent, prefix);
  return (parent / fmt::format("{}{}-XXXXXX", prefix, ::getpid())).string();
}

void require_disk_space(const std::string& place, const std::string& what, int64_t bytes) {
  struct statvfs facts {};
  if (::statvfs(place.c_str(), &facts) != 0) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", place, std::strerror(errno)));
  }
  const auto free_bytes =
      static_cast<int64_t>(facts.f_bavail) * static_cast<int64_t>(facts.f_frsize);
  if (free_bytes >= bytes) return;
  throw Error(Code::kOutOfMemory, fmt::format("{}: needs {}, but the disk has {} free", what,
                                              decimal_size(bytes), decimal_size(free_bytes)));
}

}  // namespace tgi
