#include "cmd/http/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tgi::http {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kLingerBytes = size_t{4} << 20;
constexpr milliseconds kLingerTime{2000};

// Some clients end a body with a line's end that they don't count. A server passes over at least
// one empty line where a request is to begin (RFC 9112, section 2.2).
constexpr size_t kMostBeforeRequest = 4;

bool is_line_end(char c) {
  return c == '\r' || c == '\n';
}

enum class Ready { kYes, kNo, kStopping };

// `other_fd` (-1: none) ends the wait as well.
Ready wait_for(int fd, short events, int other_fd, milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    std::array<pollfd, 2> fds = {{{.fd = fd, .events = events, .revents = 0},
                                  {.fd = other_fd, .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    const int count =
        ::poll(fds.data(), 2, static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Ready::kNo;
    if (fds[0].revents != 0) return Ready::kYes;
    return Ready::kStopping;
  }
}

Endpoint peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  int port = 0;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    port = ntohs(v6.sin6_port);
  }
  return {text.data(), port};
}

}  // namespace

Connection::Connection(UniqueFd socket, const ConnectionLimits& limits, int stopping_fd)
    : socket_(std::move(socket)),
      remote_(peer_of(socket_.get())),
      limits_(limits),
      stopping_fd_(stopping_fd) {
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool Connection::wait_for_request() {
  in_headers_ = true;
  head_.clear();
  headers_too_large_ = false;
  timed_out_ = false;
  broke_off_ = false;
  for (size_t num_passed = 0;;) {
    if (begin_ == end_ &&
        wait_for(fd(), POLLIN | POLLRDHUP, stopping_fd_, limits_.idle_timeout) != Ready::kYes) {
      return false;
    }
    request_began_ = Clock::now();
    if (begin_ == end_ && fill() <= 0) return false;
    while (begin_ < end_ && num_passed < kMostBeforeRequest && is_line_end(buffer_[begin_])) {
      ++begin_;
      ++num_passed;
    }
    if (begin_ < end_) return true;
  }
}

ssize_t Connection::fill() {
  for (;;) {
    const ssize_t count = ::recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (count >= 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(count);
      return count;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    milliseconds timeout = limits_.read_timeout;
    if (in_headers_) {
      timeout =
          std::chrono::ceil<milliseconds>(request_began_ + limits_.header_timeout - Clock::now());
    }
    if (timeout.count() <= 0 || wait_for(fd(), POLLIN, -1, timeout) != Ready::kYes) {
      timed_out_ = true;
      return -1;
    }
  }
}

ssize_t Connection::read(char* to, size_t size) {
  if (begin_ == end_) {
    const ssize_t count = fill();
    if (count <= 0) {
      broke_off_ = true;
      return count;
    }
  }
  const size_t count = std::min(size, end_ - begin_);
  if (in_headers_) {
    if (head_.size() + count > limits_.max_header_bytes) {
      headers_too_large_ = true;
      return -1;
    }
    head_.append(buffer_.data() + begin_, count);
  }
  std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, size_t size) {
  for (;;) {
    const ssize_t count = ::send(fd(), from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) return count;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (wait_for(fd(), POLLOUT, -1, limits_.write_timeout) != Ready::kYes) return -1;
  }
}

bool Connection::is_readable() const {
  return begin_ < end_ || wait_for(fd(), POLLIN, -1, milliseconds(0)) == Ready::kYes;
}

void Connection::linger() {
  ::shutdown(fd(), SHUT_WR);
  const auto deadline = Clock::now() + kLingerTime;
  for (size_t dropped = 0; dropped < kLingerBytes;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || wait_for(fd(), POLLIN, -1, left) != Ready::kYes) return;
    const ssize_t count = ::recv(fd(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return;
    dropped += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
}

}  // namespace tgi::http
