#include "cmd/editor_signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <ctime>

namespace tgi {
namespace {

constexpr std::array kSignals = {SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGHUP, SIGQUIT};

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t out;
  ::sigemptyset(&out);
  for (const int signal : signals) ::sigaddset(&out, signal);
  return out;
}

}  // namespace

EditorSignals::EditorSignals() {
  sigset_t set = set_of({});
  for (const int signal : kSignals) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_.reset(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
}

EditorSignals::~EditorSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> EditorSignals::next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void EditorSignals::obey(int signal) {
  const sigset_t one = set_of({signal});
  ::raise(signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
  // That the process goes on is known here.
  const sigset_t goes_on = set_of({SIGCONT});
  const timespec at_once{};
  ::sigtimedwait(&goes_on, nullptr, &at_once);
}

}  // namespace tgi
