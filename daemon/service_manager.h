// The daemon's side of systemd's interface, which any manager may offer: sockets handed over
// (sd_listen_fds(3)) and messages about the state (sd_notify(3)). Our own and not libsystemd: the
// first is three environment variables, the second one datagram, and the library would be needed on
// every machine, also where nothing of systemd runs. Without a manager everything here does
// nothing. Belongs to one thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace tgi::daemon {

// The listening socket that was handed over ($LISTEN_PID, $LISTEN_FDS), close-on-exec and
// non-blocking; nothing when none was. Takes the variables out of the environment. Throws
// kInvalidArgument when there is more than one, or when it is not a listening Unix socket.
std::optional<UniqueFd> take_inherited_listener();

class ServiceManager {
 public:
  // From $NOTIFY_SOCKET and $WATCHDOG_USEC, which are taken out of the environment: children have
  // nothing to say for us.
  ServiceManager();

  bool is_there() const { return !address_.empty(); }

  // Clients are answered from now on.
  void ready() { send("READY=1"); }

  // One line for `systemctl status`; sent when it is another one than before.
  void status(const std::string& text);

  // The end has begun and may take so long, however short the manager's own patience is.
  void stopping(std::chrono::milliseconds at_most);

  // How often alive() must be called, half of what the manager allows; nothing: never.
  std::optional<std::chrono::milliseconds> heartbeat() const { return heartbeat_; }

  // Sends the sign of life when it is due.
  void alive();

 private:
  void send(std::string_view message) const;

  std::string address_;  // of the manager's datagram socket; '@' in front: an abstract one
  std::string status_;
  std::optional<std::chrono::milliseconds> heartbeat_;
  std::chrono::steady_clock::time_point last_beat_;
};

}  // namespace tgi::daemon
