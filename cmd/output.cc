#include "cmd/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/unique_fd.h"
#include "ipc/client.h"

namespace tgi {

Error system_error(const std::string& what) {
  const int reason = errno;
  if (reason == EBADF) return {Code::kInvalidArgument, fmt::format("{} is closed", what)};
  const bool no_space = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  const Code code = reason == ENOENT ? Code::kNotFound
                    : no_space       ? Code::kOutOfMemory
                                     : Code::kInvalidArgument;
  return {code, fmt::format("{}: {}", what, std::strerror(reason))};
}

Output::Output(int fd, int cancel_fd)
    : fd_(fd), cancel_fd_(cancel_fd), is_terminal_(::isatty(fd) == 1) {}

void Output::write(std::string_view text) {
  if (text.empty()) return;
  at_line_start_ = text.back() == '\n';
  while (!text.empty()) {
    std::array<pollfd, 2> fds = {{{.fd = fd_, .events = POLLOUT, .revents = 0},
                                  {.fd = cancel_fd_, .events = POLLIN, .revents = 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) {
      throw system_error("standard output");
    }
    if (fds[1].revents != 0 && fds[0].revents == 0) {
      throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
    }
    // A pipe that is ready takes this much without blocking.
    const ssize_t count = ::write(fd_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EPIPE) {
      throw ipc::Stopped(ipc::Stopped::Why::kOutputGone);
    } else if (errno != EINTR && errno != EAGAIN) {
      throw system_error("standard output");
    }
  }
}

void Output::end_line() {
  if (!at_line_start_) write("\n");
}

std::string read_input(const std::string& path, size_t most_bytes) {
  UniqueFd file;
  int fd = STDIN_FILENO;
  if (path != "-") {
    file.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw system_error(path);
    fd = file.get();
  }
  const std::string shown = path == "-" ? "standard input" : path;
  std::string text;
  std::array<char, 64 << 10> bytes;
  for (;;) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count == 0) return text;
    if (text.size() > most_bytes) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: more than {} MiB, which is the most that is read of such a file",
                              shown, most_bytes >> 20));
    }
    if (count > 0) {
      text.append(bytes.data(), static_cast<size_t>(count));
    } else if (errno != EINTR) {
      throw system_error(shown);
    }
  }
}

std::string read_document(const std::string& path) {
  return read_input(path, size_t{256} << 20);
}

void write_file(const std::string& path, std::string_view text) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) throw system_error(path);
  while (!text.empty()) {
    const ssize_t count = ::write(fd.get(), text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      const Error error = system_error(path);
      ::unlink(temporary.c_str());
      throw Error(error);
    }
  }
  if (::fsync(fd.get()) != 0 || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = system_error(path);
    ::unlink(temporary.c_str());
    throw Error(error);
  }
}

}  // namespace tgi
