#include "base/files/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace tgi {
namespace {

[[noreturn]] void fail_system(const std::string& path, int reason) {
  const bool is_missing = reason == ENOENT || reason == ENOTDIR;
  throw Error(is_missing ? Code::kNotFound : Code::kInvalidArgument,
              fmt::format("{}: {}", path, std::strerror(reason)));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

void check_regular(const struct stat& status, const std::string& path) {
  if (S_ISREG(status.st_mode)) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected a regular file, got {}", path, kind_of(status.st_mode)));
}

// What stands in the place of a large file where a repository was cloned without git-lfs.
void check_no_pointer(const RegularFile& file, const std::string& path) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/v1\n";
  constexpr size_t kMost = 1024;
  if (file.size < kBegin.size() || file.size > kMost) return;
  char begin[kBegin.size()];
  const ssize_t got = ::pread(file.fd.get(), begin, sizeof begin, 0);
  if (got != static_cast<ssize_t>(sizeof begin) || std::string_view(begin, sizeof begin) != kBegin)
    return;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("{}: a pointer of git-lfs in the place of the file; `git lfs pull` in its "
                  "folder fetches it",
                  path));
}

}  // namespace

RegularFile open_regular_file(const std::string& path) {
  struct stat status {};
  // Asked before it is opened, as opening alone makes some devices act; and again after it, as
  // another thing may have taken its place.
  if (::stat(path.c_str(), &status) != 0) fail_system(path, errno);
  check_regular(status, path);
  RegularFile file{
      .fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC))};
  if (!file.fd || ::fstat(file.fd.get(), &status) != 0) fail_system(path, errno);
  check_regular(status, path);
  file.size = static_cast<size_t>(status.st_size);
  check_no_pointer(file, path);
  return file;
}

std::string read_to_end(const RegularFile& file, const std::string& path) {
  std::string out(file.size, '\0');
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(file.fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_system(path, errno);
    if (got == 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: had {} bytes when it was opened, but ends after {}; is it being "
                              "written?",
                              path, out.size(), done));
    }
    done += static_cast<size_t>(got);
  }
  return out;
}

std::string read_regular_file(const std::string& path) {
  return read_to_end(open_regular_file(path), path);
}

}  // namespace tgi
