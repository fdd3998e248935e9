#include "cmd/http/event_log.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/unique_fd.h"
#include "cmd/http/sse.h"

namespace tgi::http {

EventLog::EventLog(std::shared_ptr<std::atomic<int64_t>> num_bytes)
    : all_bytes_(std::move(num_bytes)) {}

EventLog::~EventLog() {
  *all_bytes_ -= num_bytes_;
}

void EventLog::add(std::string_view event) {
  const std::lock_guard lock(mutex_);
  events_.emplace_back(event);
  const auto size = static_cast<int64_t>(event.size());
  num_bytes_ += size;
  *all_bytes_ += size;
  wake_all();
}

void EventLog::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  wake_all();
}

void EventLog::wake_all() {
  for (const int fd : watchers_) (void)::eventfd_write(fd, 1);
}

EventLog::Part EventLog::read(size_t first) const {
  constexpr size_t kMostBytes = size_t{64} << 10;
  const std::lock_guard lock(mutex_);
  Part out{.bytes = {}, .next = first};
  while (out.next < events_.size() && out.bytes.size() < kMostBytes) {
    out.bytes += events_[out.next++];
  }
  out.is_all = has_ended_ && out.next >= events_.size();
  return out;
}

int64_t EventLog::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_bytes_;
}

// Its descriptor is readable when something came after it was made or cleared.
class EventLog::Watch {
 public:
  explicit Watch(EventLog& log) : log_(log), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const std::lock_guard lock(log_.mutex_);
    log_.watchers_.push_back(fd_.get());
  }
  ~Watch() {
    const std::lock_guard lock(log_.mutex_);
    std::erase(log_.watchers_, fd_.get());
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int fd() const { return fd_.get(); }
  void clear() const {
    eventfd_t count = 0;
    (void)::eventfd_read(fd_.get(), &count);
  }

 private:
  EventLog& log_;
  const UniqueFd fd_;
};

bool EventLog::follow(size_t first, int peer_fd, BodyWriter& body) {
  const Watch watch(*this);
  if (watch.fd() < 0) return false;  // no descriptor is left: the client may try again
  for (Part part = read(first);; part = read(part.next)) {
    if (!part.bytes.empty()) {
      if (!body.write(part.bytes)) return false;
      if (!part.is_all) continue;
    }
    if (part.is_all) return true;
    std::array<pollfd, 2> waiting = {{
        {.fd = watch.fd(), .events = POLLIN, .revents = 0},
        {.fd = peer_fd, .events = POLLRDHUP, .revents = 0},
    }};
    const int count = ::poll(waiting.data(), waiting.size(), kKeepAliveMs);
    if (count == 0 && !body.write(kServerSentEvents.keep_alive)) return false;
    if (waiting[1].revents != 0) return false;
    watch.clear();
  }
}

}  // namespace tgi::http
