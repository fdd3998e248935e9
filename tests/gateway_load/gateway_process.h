// `tgi serve` as a child process. Belongs to one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace tgi {

class GatewayProcess {
 public:
  // Returns when it serves. Throws Error with what it said when it does not. What it logs goes to
  // `log_path`.
  GatewayProcess(const std::string& tgi_path,
                 const std::string& socket_path,
                 const std::string& log_path);
  ~GatewayProcess();  // SIGTERM, and waits
  GatewayProcess(const GatewayProcess&) = delete;
  GatewayProcess& operator=(const GatewayProcess&) = delete;

  pid_t pid() const { return pid_; }
  uint16_t port() const { return port_; }  // on 127.0.0.1

  // User and system time of all its threads, those that have ended included: what utime + stime of
  // /proc/PID/stat count, without their grain of 10 ms.
  int64_t cpu_ns() const;

 private:
  void wait_until_serving(const std::string& log_path);

  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

}  // namespace tgi
