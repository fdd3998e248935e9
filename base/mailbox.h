// A bounded queue between threads that wakes an epoll loop: any thread may send, one thread
// receives. The receiver either blocks in wait() or polls fd() and drains; both leave the processor
// idle while empty.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace tgi {

template <typename T>
class Mailbox {
 public:
  explicit Mailbox(size_t capacity)
      : capacity_(capacity), event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!event_) throw Error(Code::kInternal, std::string("eventfd: ") + std::strerror(errno));
  }

  // False when full; the value is then left untouched, so that the caller can refuse it.
  [[nodiscard]] bool try_send(T&& value) {
    {
      const std::lock_guard lock(mutex_);
      if (items_.size() >= capacity_) return false;
      items_.push_back(std::move(value));
      if (items_.size() > 1) return true;  // the receiver is already being woken
    }
    wake();
    return true;
  }

  // Wakes the receiver although nothing was sent: a stop flag was set, say.
  void wake() {
    const uint64_t one = 1;
    while (::write(event_.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  // Receiver only: takes all there is into `out` (cleared first). Never blocks.
  void drain(std::vector<T>& out) {
    uint64_t ignored = 0;
    while (::read(event_.get(), &ignored, sizeof ignored) < 0 && errno == EINTR) {
    }
    out.clear();
    const std::lock_guard lock(mutex_);
    std::swap(out, items_);
  }

  // Receiver only: sleeps until something was sent, wake() was called, or the time is up (-1: no
  // limit).
  void wait(int timeout_ms) {
    pollfd poll_fd{.fd = event_.get(), .events = POLLIN, .revents = 0};
    ::poll(&poll_fd, 1, timeout_ms);
  }

  int fd() const { return event_.get(); }

 private:
  const size_t capacity_;
  UniqueFd event_;
  std::mutex mutex_;
  std::vector<T> items_;  // guarded by mutex_
};

}  // namespace tgi
