// Ctrl-C as a file descriptor, so that every wait of a command can watch for it. Nothing global:
// the signal is blocked and read through a signalfd. Belongs to the main thread; make it before any
// other thread, which then has the signal blocked as well.
//
// Where SIGINT is ignored from the start (a background job of a script) it stays ignored.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace tgi {

class Interrupt {
 public:
  Interrupt() {
    struct sigaction action {};
    ::sigaction(SIGINT, nullptr, &action);
    if (action.sa_handler == SIG_IGN) return;
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    fd_.reset(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  }

  // Readable after Ctrl-C, until take(); -1 when ignored.
  int fd() const { return fd_.get(); }

  // Whether there was one since the last take().
  bool take() {
    bool any = false;
    signalfd_siginfo info;
    while (fd_ && ::read(fd_.get(), &info, sizeof info) == sizeof info) any = true;
    return any;
  }

 private:
  UniqueFd fd_;
};

}  // namespace tgi
