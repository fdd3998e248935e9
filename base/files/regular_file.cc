#include "base/files/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
