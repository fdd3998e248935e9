#include "cmd/http/turned_away.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tgi::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kMoment{500};
constexpr int kMaxReads = 64;  // of 16 KiB at a time: nobody keeps the acceptor busy

// False: the other end has closed.
bool drop_input(int fd) {
  std::array<char, 16 << 10> dropped;
  for (int i = 0; i < kMaxReads; ++i) {
    const ssize_t count = ::recv(fd, dropped.data(), dropped.size(), MSG_DONTWAIT);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  return true;
}

}  // namespace

void TurnedAway::add(UniqueFd socket, std::string_view answer) {
  // A fresh socket has room for so little.
  (void)::send(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket.get(), SHUT_WR);
  if (open_.size() == kMaxOpen) open_.pop_front();
  open_.push_back({.socket = std::move(socket), .until = Clock::now() + kMoment});
}

void TurnedAway::append_to(std::vector<pollfd>& fds) const {
  for (const One& one : open_) {
    fds.push_back({.fd = one.socket.get(), .events = POLLIN, .revents = 0});
  }
}

int TurnedAway::timeout_ms() const {
  if (open_.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(open_.front().until - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void TurnedAway::look() {
  const auto now = Clock::now();
  std::erase_if(open_,
                [&](const One& one) { return one.until <= now || !drop_input(one.socket.get()); });
}

}  // namespace tgi::http
