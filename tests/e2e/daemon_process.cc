#include "tests/e2e/daemon_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/catch.h"

namespace tgi {

std::string tgid_binary() {
  return std::string(TGI_BINARY_DIR) + "/bin/tgid";
}

DaemonProcess::DaemonProcess(const Home& home, const std::vector<std::string>& flags)
    : socket_(home.socket()) {
  std::vector<std::string> texts = {tgid_binary(), "--socket", socket_};
  texts.insert(texts.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const std::string log = home.file("tgid.log");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int reason =
      ::posix_spawn(&pid_, texts[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  REQUIRE(reason == 0);
  for (int i = 0; i < 1000 && !ipc::someone_listens(socket_); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  INFO(read_file(log));
  try {
    // An emulated GPU under a sanitizer takes its time.
    REQUIRE(wait_for([](const ipc::Status& status) { return status.phase != "loading"; }, 300000));
  } catch (...) {
    kill();
    throw;
  }
}

DaemonProcess::~DaemonProcess() {
  kill();
}

void DaemonProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool DaemonProcess::wait_for(const std::function<bool(const ipc::Status&)>& holds,
                             int timeout_ms) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (std::chrono::steady_clock::now() < deadline) {
    if (holds(status())) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool DaemonProcess::becomes_idle(int timeout_ms) const {
  return wait_for(
      [](const ipc::Status& status) {
        return status.model && status.model->num_running == 0 && status.model->num_waiting == 0 &&
               status.model->num_blocks_used == 0;
      },
      timeout_ms);
}

void DaemonProcess::signal(int number) const {
  ::kill(pid_, number);
}

int DaemonProcess::wait() {
  int status = 0;
  REQUIRE(::waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

double DaemonProcess::cpu_seconds() const {
  std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
  std::string skipped;
  for (int i = 0; i < 13; ++i) stat >> skipped;
  double user = 0;
  double system = 0;
  stat >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

RawConnection::RawConnection(const std::string& socket) : fd_(ipc::connect_unix(socket)) {
  REQUIRE(ipc::decode_hello(read_line()).protocol == ipc::kProtocolVersion);
}

void RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (ipc::write_from(fd_.get(), bytes) == ipc::WriteStatus::kClosed) return;
    pollfd one{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    if (!bytes.empty()) ::poll(&one, 1, 1000);
  }
}

void RawConnection::send_request(std::string_view method, const ipc::OrderedJson& params) {
  send(ipc::encode_request(method, params) + "\n");
}

std::string RawConnection::read_line(int timeout_ms) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (std::chrono::steady_clock::now() < deadline) {
    if (auto line = reader_.next()) return *line;
    pollfd one{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&one, 1, 100) <= 0) continue;
    if (ipc::read_into(fd_.get(), reader_) == ipc::ReadStatus::kClosed) {
      if (auto line = reader_.next()) return *line;
      return "";
    }
  }
  return "";
}

}  // namespace tgi
