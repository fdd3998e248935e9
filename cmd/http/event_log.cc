#include "cmd/http/event_log.h"

#include <poll.h>

#include <utility>

#include "cmd/http/sse.h"

namespace tgi::http {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

}  // namespace

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
  changed_.notify_all();
}

void EventLog::end() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
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

bool EventLog::wait_beyond(size_t first, milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return has_ended_ || events_.size() > first; });
}

// No descriptor of its own wakes a follower: followers are as many as clients like, and descriptors
// are planned (descriptor_budget.h). So it looks after its client now and then.
bool EventLog::follow(size_t first, int peer_fd, BodyWriter& body) {
  constexpr milliseconds kLookAfterClient{200};
  auto quiet_since = Clock::now();
  for (Part part = read(first);; part = read(part.next)) {
    if (!part.bytes.empty()) {
      if (!body.write(part.bytes)) return false;
      quiet_since = Clock::now();
    }
    if (part.is_all) return true;
    if (wait_beyond(part.next, kLookAfterClient)) continue;
    pollfd peer{.fd = peer_fd, .events = POLLRDHUP, .revents = 0};
    if (::poll(&peer, 1, 0) > 0) return false;
    if (Clock::now() - quiet_since < milliseconds(kKeepAliveMs)) continue;
    if (!body.write(kServerSentEvents.keep_alive)) return false;
    quiet_since = Clock::now();
  }
}

}  // namespace tgi::http
