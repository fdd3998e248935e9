#include "cmd/download/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "cmd/download/disk.h"

namespace tgi::download {

std::optional<FileLock> FileLock::try_lock(const std::string& path) {
  make_folders(std::filesystem::path(path).parent_path().string());
  for (;;) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0664));
    if (!fd) throw disk_error("lock", path, errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::nullopt;
      if (errno == EINTR) continue;
      throw disk_error("lock", path, errno);
    }
    // Somebody may have cleaned the folder between open and flock: the lock of a file without a
    // name keeps nobody out.
    struct stat opened {};
    struct stat named {};
    if (::fstat(fd.get(), &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
        opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
      return FileLock(std::move(fd));
    }
  }
}

}  // namespace tgi::download
