#include "daemon/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/unique_fd.h"

namespace tgi::daemon {
namespace {

constexpr std::chrono::seconds kPause(1);

}  // namespace

LogFile::LogFile(std::string path, int fd, off_t max_bytes)
    : path_(std::move(path)), fd_(fd), max_bytes_(max_bytes), is_ours_(is_here()) {}

// Whether the descriptor leads to the file that is there by the path.
bool LogFile::is_here() const {
  struct stat open {};
  struct stat there {};
  return ::fstat(fd_, &open) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
         S_ISREG(there.st_mode) && open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

void LogFile::look(Clock::time_point now) {
  if (!is_ours_ || now < next_look_) return;
  next_look_ = now + kPause;
  struct stat status {};
  if (::fstat(fd_, &status) == 0 && status.st_size > max_bytes_) begin_anew();
}

void LogFile::begin_anew() {
  // Another daemon may have put it aside already.
  if (is_here() && std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) return;
  const UniqueFd next(
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (next) ::dup2(next.get(), fd_);
}

}  // namespace tgi::daemon
