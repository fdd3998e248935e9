#include "cmd/http/background_runs.h"

#include <sys/socket.h>

#include <array>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace tgi::http {

BackgroundRuns::Line BackgroundRuns::open_line() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(Code::kInternal, "no socket is left for what runs in the background");
  }
  return {.watched = UniqueFd(ends[0]), .held = UniqueFd(ends[1])};
}

BackgroundRuns::~BackgroundRuns() {
  std::vector<std::jthread> ended;  // each joins
  std::unique_lock lock(mutex_);
  for (auto& [id, run] : runs_) run.held.reset();
  one_ended_.wait(lock, [&] { return runs_.empty(); });
  ended.swap(ended_);
  lock.unlock();
}

void BackgroundRuns::start(const std::string& id, Line line, std::function<void()> work) {
  const std::lock_guard lock(mutex_);  // what the thread does last waits until it is in its place
  Run& made = runs_[id];
  made = {.watched = std::move(line.watched), .held = std::move(line.held), .thread = {}};
  try {
    made.thread = std::jthread([this, id, work = std::move(work)] { run(id, work); });
  } catch (...) {
    runs_.erase(id);
    throw;
  }
}

// On a thread of its own. Its descriptors are free when it ends, whoever joins it later.
void BackgroundRuns::run(const std::string& id, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    log_error("what ran in the background failed", {{"id", id}, {"error", error.what()}});
  }
  std::vector<std::jthread> before;  // joined without the lock
  const std::lock_guard lock(mutex_);
  before.swap(ended_);
  const auto it = runs_.find(id);
  ended_.push_back(std::move(it->second.thread));
  runs_.erase(it);
  one_ended_.notify_all();
}

bool BackgroundRuns::cancel(const std::string& id) {
  std::unique_lock lock(mutex_);
  const auto it = runs_.find(id);
  if (it == runs_.end()) return false;
  it->second.held.reset();
  one_ended_.wait(lock, [&] { return !runs_.contains(id); });
  return true;
}

}  // namespace tgi::http
