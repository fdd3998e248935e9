// epoll with a deadline finer than a millisecond and with Ctrl-C. Belongs to one thread.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <span>

#include "base/unique_fd.h"
#include "cmd/bench/transport.h"

namespace tgi::bench {

class Poller {
 public:
  // `cancel_fd` is readable after Ctrl-C; it is not read here. -1: none.
  explicit Poller(int cancel_fd);

  // Watches `fd` for EPOLLIN, EPOLLOUT or both; again: for others.
  void watch(int fd, uint32_t events);
  void forget(int fd);

  // What is ready, as (events, data.fd); nothing when the time is up. Returns at once, if only with
  // nothing, when `until` is past.
  std::span<const epoll_event> wait(BenchClock::time_point until);

  bool interrupted() const { return interrupted_; }

 private:
  void arm(BenchClock::time_point until);

  const int cancel_fd_;
  UniqueFd epoll_;
  UniqueFd timer_;
  BenchClock::time_point armed_{};
  bool interrupted_ = false;
  std::array<epoll_event, 256> events_;
};

}  // namespace tgi::bench
