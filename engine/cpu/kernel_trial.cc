// See kernel_trial.h. What runs in the child is marked so: it may be the copy of a process whose
// other threads held any lock.
#include "engine/cpu/kernel_trial.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

#include "engine/cpu/host_resources.h"

namespace tgi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostFiles = 65536;

// What ends the child when a kernel is bad; SIGPROF: it took too long.
constexpr int kFaults[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};

struct FaultName {
  int signal;
  const char* name;
};
constexpr FaultName kFaultNames[] = {{SIGILL, "illegal instruction (SIGILL)"},
                                     {SIGSEGV, "segmentation fault (SIGSEGV)"},
                                     {SIGBUS, "bus error (SIGBUS)"},
                                     {SIGFPE, "arithmetic exception (SIGFPE)"},
                                     {SIGTRAP, "trap (SIGTRAP)"},
                                     {SIGABRT, "aborted (SIGABRT)"}};

enum class Outcome : uint32_t { kRunning, kSame, kDifferent };

// Shared with the child.
struct Report {
  std::atomic<int32_t> check;  // that is being run
  std::atomic<Outcome> outcome;
  KernelDifference difference;
};

// ---- in the child

void close_files() {
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, 3U, ~0U, 0U) == 0) return;
#endif
  // Before Linux 5.9. There may be a limit of a billion.
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = limit.rlim_cur < kMostFiles ? static_cast<int>(limit.rlim_cur) : kMostFiles;
  for (int file = 3; file < end; ++file) ::close(file);
}

void limit_child(pid_t parent, std::chrono::milliseconds processor_time) {
  // It holds copies of what the process has open, sockets among them, and must not outlive it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  close_files();
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);
  for (const int fault : kFaults) ::signal(fault, SIG_DFL);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(processor_time);
  const std::chrono::microseconds rest = processor_time - seconds;
  const itimerval timer{.it_interval = {}, .it_value = {seconds.count(), rest.count()}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
  sigset_t faults;
  sigemptyset(&faults);
  for (const int fault : kFaults) sigaddset(&faults, fault);
  ::sigprocmask(SIG_UNBLOCK, &faults, nullptr);
}

void run_checks(const KernelChecks& checks, const KernelTable& kernels, Report& report) {
  for (int check = 0; check < checks.size(); ++check) {
    report.check = check;
    if (const auto difference = checks.run(check, kernels)) {
      report.difference = *difference;
      report.outcome = Outcome::kDifferent;
      return;
    }
  }
  report.outcome = Outcome::kSame;
}

// ---- in the parent

class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &saved_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t saved_;
};

struct Ending {
  bool too_late = false;
  std::optional<int> status;  // as waitpid gives it; none where the process has children reaped
};

Ending wait_for(pid_t child, std::chrono::milliseconds time) {
  Ending out;
  const auto end = Clock::now() + time;
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) {
      out.status = status;
      return out;
    }
    if (ended < 0 && errno != EINTR) return out;
    if (!out.too_late && Clock::now() > end) {
      out.too_late = true;
      ::kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

std::string describe_ending(const Ending& ending, const TrialLimits& limits) {
  if (ending.too_late) return fmt::format("did not end within {} ms", limits.time.count());
  if (!ending.status) return "ended its process";
  if (!WIFSIGNALED(*ending.status)) {
    return fmt::format("ended its process with status {}", WEXITSTATUS(*ending.status));
  }
  const int signal = WTERMSIG(*ending.status);
  if (signal == SIGPROF) {
    return fmt::format("did not end within {} ms of processor time", limits.processor_time.count());
  }
  for (const FaultName& fault : kFaultNames) {
    if (fault.signal == signal) return fault.name;
  }
  return fmt::format("killed by signal {}", signal);
}

std::string describe(const KernelDifference& difference) {
  return fmt::format("number {} is {:a} (0x{:08x}), from plain C++ {:a} (0x{:08x})",
                     difference.index, difference.got, std::bit_cast<uint32_t>(difference.got),
                     difference.expected, std::bit_cast<uint32_t>(difference.expected));
}

}  // namespace

std::optional<KernelFault> try_kernels(const KernelChecks& checks,
                                       const KernelTable& kernels,
                                       const TrialLimits& limits) {
  const Buffer shared(
      ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
      sizeof(Report), [](void* data, size_t size) { ::munmap(data, size); });
  if (shared.data() == MAP_FAILED) {
    return KernelFault{"any", fmt::format("not tried: no memory: {}", std::strerror(errno))};
  }
  auto& report = *new (shared.data()) Report{};
  const pid_t parent = ::getpid();
  pid_t child = -1;
  {
    // No handler of this process may run in the child.
    const AllSignalsBlocked blocked;
    child = ::fork();
    if (child == 0) {
      limit_child(parent, limits.processor_time);
      run_checks(checks, kernels, report);
      ::_exit(0);
    }
  }
  if (child < 0) {
    return KernelFault{"any", fmt::format("not tried: no child process: {}", std::strerror(errno))};
  }
  const Ending ending = wait_for(child, limits.time);
  const Outcome outcome = report.outcome;
  if (outcome == Outcome::kSame) return std::nullopt;
  return KernelFault{checks.name(report.check), outcome == Outcome::kDifferent
                                                    ? describe(report.difference)
                                                    : describe_ending(ending, limits)};
}

}  // namespace tgi
