#include "tests/cmd/run_tgi.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace tgi {
namespace {

constexpr int kPatienceMs = 10'000;

// Not Catch's REQUIRE: tests run several commands at once, and Catch counts in one thread only.
void require(bool condition) {
  if (!condition) throw std::runtime_error("running tgi: a system call did not work");
}

struct Arguments {
  explicit Arguments(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  char** get() { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> with_program(const std::vector<std::string>& arguments) {
  std::vector<std::string> out = {tgi_binary()};
  out.insert(out.end(), arguments.begin(), arguments.end());
  return out;
}

struct Pipe {
  Pipe() {
    int fds[2];
    require(::pipe2(fds, O_CLOEXEC) == 0);
    read_end.reset(fds[0]);
    write_end.reset(fds[1]);
  }
  UniqueFd read_end;
  UniqueFd write_end;
};

// A process that does not end by itself fails the test instead of hanging it.
int wait_for_exit(pid_t pid) {
  int status = 0;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(3 * kPatienceMs);
  while (::waitpid(pid, &status, WNOHANG) != pid) {
    if (std::chrono::steady_clock::now() > deadline) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string read_all(int fd) {
  std::string out;
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count <= 0) return out;
    out.append(bytes.data(), static_cast<size_t>(count));
  }
}

pid_t spawn(const Home& home, const RunSetup& setup, int input, int output, int error) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (error >= 0) ::posix_spawn_file_actions_adddup2(&actions, error, 2);
  sigset_t all;
  ::sigfillset(&all);  // a test runner may have SIGINT ignored
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  Arguments arguments(with_program(setup.arguments));
  Arguments environment(home.environment(setup));
  pid_t pid = -1;
  const int reason = ::posix_spawn(&pid, tgi_binary().c_str(), &actions, &attributes,
                                   arguments.get(), environment.get());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  require(reason == 0);
  return pid;
}

}  // namespace

std::string tgi_binary() {
  return std::string(TGI_BINARY_DIR) + "/bin/tgi";
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Home::write(const std::string& name, const std::string& text) const {
  std::ofstream(file(name), std::ios::binary) << text;
  return file(name);
}

std::vector<std::string> Home::environment(const RunSetup& setup) const {
  std::map<std::string, std::string> variables = {
      {"TGI_SOCKET", socket()},
      {"HOME", folder_.path()},
      {"XDG_STATE_HOME", file("state")},
      {"PATH", "/usr/bin:/bin"},
      {"TGI_DAEMON", "/nonexistent/tgid"},
      {"TERM", "xterm"},
      {"LC_ALL", "C.UTF-8"},
  };
  for (const auto& [name, value] : setup.environment) variables[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

Ran Home::run(const RunSetup& setup) const {
  Pipe input;
  Pipe output;
  Pipe error;
  if (setup.output_file) {
    output.write_end.reset(
        ::open(setup.output_file->c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    require(static_cast<bool>(output.write_end));
  }
  const pid_t pid =
      spawn(*this, setup, input.read_end.get(), output.write_end.get(), error.write_end.get());
  input.read_end.reset();
  output.write_end.reset();
  error.write_end.reset();
  Ran ran;
  std::thread writer([&] {
    ::signal(SIGPIPE, SIG_IGN);
    std::string_view rest = setup.input;
    while (!rest.empty()) {
      const ssize_t count = ::write(input.write_end.get(), rest.data(), rest.size());
      if (count <= 0) break;
      rest.remove_prefix(static_cast<size_t>(count));
    }
    input.write_end.reset();
  });
  std::thread error_reader([&] { ran.err = read_all(error.read_end.get()); });
  if (!setup.output_file) ran.out = read_all(output.read_end.get());
  error_reader.join();
  writer.join();
  ran.exit_status = wait_for_exit(pid);
  return ran;
}

Process::Process(const Home& home, const RunSetup& setup, Kind kind)
    : terminal_(kind == Kind::kTerminal) {
  if (!terminal_) {
    Pipe input;
    Pipe output;
    pid_ = spawn(home, setup, input.read_end.get(), output.write_end.get(), -1);
    input_ = std::move(input.write_end);
    output_ = std::move(output.read_end);
    return;
  }
  int primary = -1;
  Arguments arguments(with_program(setup.arguments));
  Arguments environment(home.environment(setup));
  pid_ = ::forkpty(&primary, nullptr, nullptr, nullptr);
  require(pid_ >= 0);
  if (pid_ == 0) {
    ::signal(SIGINT, SIG_DFL);
    ::execve(tgi_binary().c_str(), arguments.get(), environment.get());
    ::_exit(99);
  }
  output_.reset(primary);
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Process::write(const std::string& text) {
  const int fd = terminal_ ? output_.get() : input_.get();
  require(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void Process::interrupt() {
  terminal_ ? write("\x03") : static_cast<void>(::kill(pid_, SIGINT));
}

bool Process::read_some(int timeout_ms) {
  pollfd one{.fd = output_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&one, 1, timeout_ms) <= 0) return false;
  std::array<char, 4096> bytes;
  const ssize_t count = ::read(output_.get(), bytes.data(), bytes.size());
  if (count <= 0) return false;
  collected_.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

bool Process::wait_for_output(const std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  for (;;) {
    const size_t found = collected_.find(text, seen_);
    if (found != std::string::npos) {
      seen_ = found + text.size();
      return true;
    }
    if (std::chrono::steady_clock::now() > deadline || !read_some(kPatienceMs)) return false;
  }
}

bool Process::takes_lines() const {
  termios mode{};
  require(::tcgetattr(output_.get(), &mode) == 0);
  return (mode.c_lflag & ICANON) != 0 && (mode.c_lflag & ECHO) != 0;
}

void Process::take_lines() const {
  termios mode{};
  require(::tcgetattr(output_.get(), &mode) == 0);
  mode.c_lflag |= ICANON | ECHO;
  require(::tcsetattr(output_.get(), TCSANOW, &mode) == 0);
}

bool Process::wait_for_keys() {
  for (int i = 0; i < kPatienceMs; ++i) {
    if (!takes_lines()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string Process::read_to_end() {
  while (read_some(kPatienceMs)) {
  }
  return collected_;
}

int Process::wait() {
  const int status = wait_for_exit(pid_);
  pid_ = -1;
  return status;
}

}  // namespace tgi
