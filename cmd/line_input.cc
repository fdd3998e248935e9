#include "cmd/line_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "cmd/output.h"
#include "ipc/client.h"

namespace tgi {
namespace {

bool is_readable(int fd, int timeout_ms) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, timeout_ms) > 0;
}

}  // namespace

LineInput::LineInput(const std::string& path)
    : fd_(STDIN_FILENO), shown_(path == "-" ? "standard input" : path) {
  if (path == "-") return;
  file_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) throw system_error(path);
  fd_ = file_.get();
}

LineInput LineInput::of_text(std::string text) {
  LineInput out;
  out.bytes_ = std::move(text);
  out.is_at_end_ = true;
  return out;
}

std::optional<std::string> LineInput::take_line() {
  size_t end = bytes_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = bytes_.size();
    if (!is_at_end_ || begin_ == bytes_.size()) return std::nullopt;
    end = bytes_.size();
  }
  std::string line = bytes_.substr(begin_, end - begin_);
  begin_ = searched_ = std::min(end + 1, bytes_.size());
  return line;
}

// REQUIRES: it is not at its end.
void LineInput::read_some() {
  if (bytes_.size() - begin_ > kLongestLine) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: a line has more than {} MiB, which is the most that is read of one",
                    shown_, kLongestLine >> 20));
  }
  bytes_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  std::array<char, 64 << 10> some;
  const ssize_t count = ::read(fd_, some.data(), some.size());
  if (count > 0) bytes_.append(some.data(), static_cast<size_t>(count));
  if (count == 0) is_at_end_ = true;
  if (count < 0 && errno != EINTR && errno != EAGAIN) throw system_error(shown_);
}

std::optional<std::string> LineInput::next(const LineWatch& watch) {
  for (;;) {
    if (auto line = take_line()) return line;
    if (is_at_end_) return std::nullopt;
    // An output without a reader shows as an error, which is told unasked.
    std::array<pollfd, 4> fds = {{{.fd = fd_, .events = POLLIN, .revents = 0},
                                  {.fd = watch.cancel_fd, .events = POLLIN, .revents = 0},
                                  {.fd = watch.output_fd, .events = 0, .revents = 0},
                                  {.fd = watch.stop_fd, .events = POLLIN, .revents = 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) throw system_error(shown_);
    if (fds[3].revents != 0) return std::nullopt;
    if (fds[1].revents != 0) throw ipc::Stopped(ipc::Stopped::Why::kCancelFd);
    if ((fds[2].revents & (POLLERR | POLLHUP)) != 0) {
      throw ipc::Stopped(ipc::Stopped::Why::kOutputGone);
    }
    if (fds[0].revents != 0) read_some();
  }
}

std::optional<std::string> LineInput::next_if_there() {
  for (;;) {
    if (auto line = take_line()) return line;
    if (is_at_end_ || !is_readable(fd_, 0)) return std::nullopt;
    read_some();
  }
}

}  // namespace tgi
