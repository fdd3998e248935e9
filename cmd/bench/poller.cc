#include "cmd/bench/poller.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

namespace tgi::bench {
namespace {

[[noreturn]] void fail(const char* call) {
  throw Error(Code::kInternal, std::string(call) + ": " + std::strerror(errno));
}

}  // namespace

Poller::Poller(int cancel_fd)
    : cancel_fd_(cancel_fd),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!epoll_) fail("epoll_create1");
  if (!timer_) fail("timerfd_create");
  watch(timer_.get(), EPOLLIN);
  if (cancel_fd_ >= 0) watch(cancel_fd_, EPOLLIN);
}

void Poller::watch(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return;
  if (errno != EEXIST || ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) != 0) {
    fail("epoll_ctl");
  }
}

void Poller::forget(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);  // a closed one is forgotten already
}

// The steady clock of libstdc++ is CLOCK_MONOTONIC.
void Poller::arm(BenchClock::time_point until) {
  if (until == armed_) return;
  armed_ = until;
  const auto ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(until.time_since_epoch()).count();
  itimerspec time{};
  time.it_value.tv_sec = ns / 1'000'000'000;
  time.it_value.tv_nsec = ns % 1'000'000'000;
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr) != 0) {
    fail("timerfd_settime");
  }
}

std::span<const epoll_event> Poller::wait(BenchClock::time_point until) {
  const bool is_past = until <= BenchClock::now();
  if (!is_past) arm(until);
  const int count = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                                 is_past ? 0 : -1);
  if (count < 0 && errno != EINTR) fail("epoll_wait");
  size_t num_ready = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event event = events_[static_cast<size_t>(i)];
    if (event.data.fd == timer_.get()) {
      uint64_t ticks = 0;
      if (::read(timer_.get(), &ticks, sizeof ticks) > 0) armed_ = {};
    } else if (event.data.fd == cancel_fd_) {
      interrupted_ = true;
    } else {
      events_[num_ready++] = event;
    }
  }
  return {events_.data(), num_ready};
}

}  // namespace tgi::bench
