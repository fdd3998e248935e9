#include "ipc/start_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/unique_fd.h"
#include "ipc/line_socket.h"

namespace tgi::ipc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLongestPollMs = 20;
constexpr size_t kLogTailLines = 10;
constexpr std::string_view kReasonBegin = "tgid: ";  // of the line that a daemon ends with

// Between two looks at a daemon: short at first, for a small model is there after 100 ms.
class Pauses {
 public:
  void wait(const Client& client) {
    client.pause(std::min(kLongestPollMs, 1 + num_waited_ / 30));
    ++num_waited_;
  }

 private:
  int num_waited_ = 0;
};

bool is_executable(const std::string& path) {
  return std::filesystem::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

struct StartedDaemon {
  pid_t pid = 0;
  std::string program;
  std::string log_path;
  off_t log_begin = 0;  // what was in the log before
};

void check(int reason, std::string_view what) {
  if (reason != 0) {
    throw Error(Code::kInternal,
                fmt::format("starting the daemon, {}: {}", what, std::strerror(reason)));
  }
}

// posix_spawn's two argument objects, freed in the end.
struct SpawnSetup {
  SpawnSetup() {
    check(::posix_spawn_file_actions_init(&actions), "file actions");
    check(::posix_spawnattr_init(&attributes), "attributes");
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// Nothing of the command may hold on to the daemon or the other way round: own session, no file of
// ours but the log, the folder "/", signals as at a login.
void detach(SpawnSetup& setup, int log_fd) {
  auto* actions = &setup.actions;
  check(::posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0), "stdin");
  check(::posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0), "stdout");
  check(::posix_spawn_file_actions_adddup2(actions, log_fd, 2), "stderr");
  check(::posix_spawn_file_actions_addclosefrom_np(actions, 3), "closing files");
  check(::posix_spawn_file_actions_addchdir_np(actions, "/"), "folder");
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  check(::posix_spawnattr_setsigmask(&setup.attributes, &none), "signal mask");
  check(::posix_spawnattr_setsigdefault(&setup.attributes, &all), "signal actions");
  check(::posix_spawnattr_setflags(
            &setup.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF),
        "flags");
}

StartedDaemon spawn_daemon(const std::string& socket_path, const std::vector<std::string>& flags) {
  StartedDaemon daemon{
      .pid = 0, .program = find_daemon(), .log_path = daemon_log_path(), .log_begin = 0};
  make_state_dir();
  const UniqueFd log(::open(daemon.log_path.c_str(),
                            O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) {
    throw Error(Code::kInvalidArgument,
                fmt::format("log {}: {}; {}", daemon.log_path, std::strerror(errno), kStateAdvice));
  }
  struct stat status {};
  if (::fstat(log.get(), &status) == 0) daemon.log_begin = status.st_size;

  SpawnSetup setup;
  detach(setup, log.get());
  std::string program = daemon.program;
  std::vector<std::string> words = {program, "--socket",
                                    std::filesystem::absolute(socket_path).string()};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int reason = ::posix_spawn(&daemon.pid, program.c_str(), &setup.actions, &setup.attributes,
                                   arguments.data(), ::environ);
  if (reason != 0) {
    throw Error(Code::kUnavailable, fmt::format("{}: {}", program, std::strerror(reason)));
  }
  return daemon;
}

// What the log says of this start: its last lines, or those up to the one that says why a daemon
// ended, for others may write to the same log.
std::string log_tail(const StartedDaemon& daemon) {
  std::ifstream log(daemon.log_path);
  std::error_code error;
  // A daemon that found it full has begun another one.
  const bool is_another =
      std::filesystem::file_size(daemon.log_path, error) < static_cast<uintmax_t>(daemon.log_begin);
  if (!is_another) log.seekg(daemon.log_begin);
  std::vector<std::string> lines;
  std::vector<std::string> up_to_reason;
  for (std::string line; std::getline(log, line);) {
    lines.push_back(line);
    if (lines.size() > kLogTailLines) lines.erase(lines.begin());
    if (line.starts_with(kReasonBegin)) up_to_reason = lines;
  }
  if (!up_to_reason.empty()) lines = std::move(up_to_reason);
  if (lines.empty()) return fmt::format("; its log {} says nothing", daemon.log_path);
  return fmt::format("; the end of its log {}:\n{}", daemon.log_path, fmt::join(lines, "\n"));
}

// How the daemon ended, or nothing while it runs.
std::optional<int> exit_of(StartedDaemon& daemon) {
  int status = 0;
  if (daemon.pid == 0 || ::waitpid(daemon.pid, &status, WNOHANG) != daemon.pid) {
    return std::nullopt;
  }
  daemon.pid = 0;
  return status;
}

[[noreturn]] void fail_ended(const StartedDaemon& daemon, int status) {
  const std::string how = WIFSIGNALED(status)
                              ? fmt::format("was killed by signal {}", WTERMSIG(status))
                              : fmt::format("ended with exit status {}", WEXITSTATUS(status));
  throw Error(Code::kUnavailable,
              fmt::format("{}, started for this, {}{}", daemon.program, how, log_tail(daemon)));
}

std::optional<Status> try_status(const Client& client) {
  try {
    return client.status();
  } catch (const Error& error) {
    if (error.code() != Code::kUnavailable) throw;
    return std::nullopt;
  }
}

Status wait_until_answering(const Client& client,
                            StartedDaemon& daemon,
                            const StartOptions& options) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(options.start_timeout_ms);
  const int lost_the_race = code_row(Code::kOverloaded).exit_status;
  bool has_given_way = false;
  for (Pauses pauses;;) {
    // Asked before the status: a daemon of another command may answer after ours has given way.
    const std::optional<int> ended = exit_of(daemon);
    if (const std::optional<Status> status = try_status(client)) return *status;
    if (ended && !(WIFEXITED(*ended) && WEXITSTATUS(*ended) == lost_the_race)) {
      fail_ended(daemon, *ended);
    }
    has_given_way = has_given_way || ended.has_value();
    if (Clock::now() > deadline) {
      const std::string_view what =
          has_given_way ? "found its place taken by a daemon that does" : "was started, but does";
      throw Error(Code::kUnavailable,
                  fmt::format("{} {} not answer at {} after {} ms{}", daemon.program, what,
                              client.socket_path(), options.start_timeout_ms, log_tail(daemon)));
    }
    pauses.wait(client);
  }
}

Status wait_until_loaded(const Client& client,
                         Status status,
                         StartedDaemon* daemon,
                         const StartOptions& options) {
  if (status.phase == "loading" && options.on_notice) {
    options.on_notice(fmt::format("loading {}", status.phase_detail));
  }
  for (Pauses pauses; status.phase == "loading";) {
    pauses.wait(client);
    const std::optional<Status> next = try_status(client);
    if (!next) {
      if (daemon != nullptr) {
        client.pause(kLongestPollMs);  // its socket closes a moment before it has ended
        if (const std::optional<int> ended = exit_of(*daemon)) fail_ended(*daemon, *ended);
      }
      throw Error(Code::kUnavailable, fmt::format("the daemon at {} went away while loading {}",
                                                  client.socket_path(), status.phase_detail));
    }
    status = *next;
  }
  if (status.phase == "failed" && !options.accept_failed) {
    throw Error(Code::kUnavailable, fmt::format("the daemon has no model, as loading it failed: {}",
                                                status.phase_detail));
  }
  return status;
}

}  // namespace

std::string daemon_log_path() {
  return state_dir() + "/tgid.log";
}

std::string find_daemon() {
  if (const char* chosen = std::getenv("TGI_DAEMON"); chosen != nullptr && *chosen != '\0') {
    if (is_executable(chosen)) return chosen;
    throw Error(Code::kNotFound, fmt::format("$TGI_DAEMON is {}: no such program", chosen));
  }
  const std::string beside = executable_dir() + "/tgid";
  if (is_executable(beside)) return beside;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (!folder.empty() && is_executable(folder + "/tgid")) return folder + "/tgid";
  }
  throw Error(Code::kNotFound,
              fmt::format("no daemon runs and there is none to start: no {} and no tgid on $PATH; "
                          "install it or set $TGI_DAEMON",
                          beside));
}

Status prepare_daemon(const Client& client, const StartOptions& options) {
  std::optional<Status> status;
  std::optional<StartedDaemon> daemon;
  try {
    status = client.status();
  } catch (
      const NobodyListens&) {  // a daemon that is stuck or another user's is an error to report
    if (!options.may_start) throw;
    daemon = spawn_daemon(client.socket_path(), options.daemon_flags);
    if (options.on_notice) {
      options.on_notice(
          fmt::format("starting a daemon ({}, log {})", daemon->program, daemon->log_path));
    }
    status = wait_until_answering(client, *daemon, options);
  }
  if (!options.wait_for_model) return *status;
  return wait_until_loaded(client, *status, daemon ? &*daemon : nullptr, options);
}

}  // namespace tgi::ipc
