// The real tgid as a child process, on a socket and in a home of the test.
#pragma once

#include <string>
#include <vector>

#include "ipc/client.h"
#include "tests/cmd/run_tgi.h"

namespace tgi {

class DaemonProcess {
 public:
  // Waits until its model is ready (or has failed).
  explicit DaemonProcess(const Home& home, const std::vector<std::string>& flags = {});
  ~DaemonProcess();  // kills it when it still runs

  ipc::Client client() const { return ipc::Client({.socket_path = socket_}); }
  ipc::Status status() const { return client().status(); }

  // Polls the status until `holds`; false after `timeout_ms`.
  bool wait_for(const std::function<bool(const ipc::Status&)>& holds, int timeout_ms = 10000) const;

  // Nothing runs, nothing waits, no block is used.
  bool becomes_idle(int timeout_ms = 10000) const;

  void signal(int number) const;
  int wait();  // its exit status, 128 + n when killed by signal n
  pid_t pid() const { return pid_; }
  const std::string& socket() const { return socket_; }

  double cpu_seconds() const;

 private:
  void kill();

  std::string socket_;
  pid_t pid_ = -1;
};

std::string tgid_binary();

// A connection that has said nothing yet; the hello line is read.
class RawConnection {
 public:
  explicit RawConnection(const std::string& socket);
  void send(std::string_view bytes);
  void send_request(std::string_view method, const ipc::OrderedJson& params);
  // The next line, or "" when the daemon closed or nothing came in time.
  std::string read_line(int timeout_ms = 10000);
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  ipc::LineReader reader_;
};

}  // namespace tgi
