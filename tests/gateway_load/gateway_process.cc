#include "tests/gateway_load/gateway_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/error.h"

namespace tgi {
namespace {

constexpr std::chrono::seconds kStartTimeout{20};
constexpr std::string_view kUrlMark = " on http://127.0.0.1:";

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

GatewayProcess::GatewayProcess(const std::string& tgi_path,
                               const std::string& socket_path,
                               const std::string& log_path) {
  const std::array<const char*, 12> argv = {tgi_path.c_str(),
                                            "serve",
                                            "--no-start",
                                            "--socket",
                                            socket_path.c_str(),
                                            "--http",
                                            "127.0.0.1:0",
                                            "--max-concurrent-requests",
                                            "100000",
                                            nullptr};
  pid_ = ::fork();
  if (pid_ < 0) throw Error(Code::kInternal, fmt::format("fork: {}", std::strerror(errno)));
  if (pid_ == 0) {
    const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(tgi_path.c_str(), const_cast<char* const*>(argv.data()));
    ::_exit(127);
  }
  wait_until_serving(log_path);
}

GatewayProcess::~GatewayProcess() {
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

void GatewayProcess::wait_until_serving(const std::string& log_path) {
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  for (;;) {
    const std::string log = contents(log_path);
    if (const size_t at = log.find(kUrlMark);
        at != std::string::npos && log.find('\n', at) != std::string::npos) {
      port_ = static_cast<uint16_t>(std::atoi(log.c_str() + at + kUrlMark.size()));
      return;
    }
    const bool ended = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    if (ended || std::chrono::steady_clock::now() > deadline) {
      if (!ended) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
      }
      throw Error(Code::kUnavailable, "tgi serve does not serve; it said: " + log);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

int64_t GatewayProcess::cpu_ns() const {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    throw Error(Code::kUnavailable, "the gateway has ended");
  }
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace tgi
