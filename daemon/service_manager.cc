#include "daemon/service_manager.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace tgi::daemon {
namespace {

constexpr int kFirstInheritedFd = 3;

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string out = value == nullptr ? "" : value;
  ::unsetenv(name);
  return out;
}

int64_t number_in(const std::string& text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int socket_option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

}  // namespace

std::optional<UniqueFd> take_inherited_listener() {
  const std::string pid = take_variable("LISTEN_PID");
  const std::string count = take_variable("LISTEN_FDS");
  take_variable("LISTEN_FDNAMES");
  // Variables that were left in the environment are another process's.
  if (number_in(pid) != ::getpid() || number_in(count) == 0) return std::nullopt;
  if (count != "1") {
    throw Error(Code::kInvalidArgument,
                fmt::format("the service manager hands over {} sockets, expected one ListenStream=",
                            count));
  }
  UniqueFd fd(kFirstInheritedFd);
  if (socket_option(fd.get(), SO_DOMAIN) != AF_UNIX ||
      socket_option(fd.get(), SO_TYPE) != SOCK_STREAM ||
      socket_option(fd.get(), SO_ACCEPTCONN) != 1) {
    throw Error(Code::kInvalidArgument,
                "what the service manager hands over is not a listening Unix stream socket");
  }
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  return fd;
}

ServiceManager::ServiceManager() : address_(take_variable("NOTIFY_SOCKET")) {
  const std::string pid = take_variable("WATCHDOG_PID");
  const int64_t watchdog_us = number_in(take_variable("WATCHDOG_USEC"));
  const bool is_ours = pid.empty() || number_in(pid) == ::getpid();
  if (is_there() && is_ours && watchdog_us > 0) {
    heartbeat_ =
        std::max(std::chrono::milliseconds(1), std::chrono::milliseconds(watchdog_us / 1000 / 2));
  }
}

void ServiceManager::status(const std::string& text) {
  if (text == status_) return;
  status_ = text;
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  send("STATUS=" + line);
}

void ServiceManager::stopping(std::chrono::milliseconds at_most) {
  send(fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}",
                   std::chrono::duration_cast<std::chrono::microseconds>(at_most).count()));
}

void ServiceManager::alive() {
  if (!heartbeat_) return;
  const auto now = std::chrono::steady_clock::now();
  // Woken by a timer of this very length, which may fire a little early.
  if (now - last_beat_ < *heartbeat_ / 2) return;
  last_beat_ = now;
  send("WATCHDOG=1");
}

void ServiceManager::send(std::string_view message) const {
  if (address_.empty()) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address_.size() >= sizeof to.sun_path) return log_warn("$NOTIFY_SOCKET is too long");
  std::memcpy(to.sun_path, address_.data(), address_.size());
  socklen_t size = offsetof(sockaddr_un, sun_path) + static_cast<socklen_t>(address_.size());
  if (address_.front() == '@') {
    to.sun_path[0] = '\0';
  } else {
    ++size;  // the zero at the end
  }
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&to);
  if (!fd || ::sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL, generic, size) < 0) {
    log_warn("can't notify the service manager", {{"error", std::strerror(errno)}});
  }
}

}  // namespace tgi::daemon
