#include "cmd/http/background_runs.h"

#include <sys/socket.h>

#include <array>
#include <utility>

#include "base/error.h"

namespace tgi::http {

BackgroundRuns::Line BackgroundRuns::open_line() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Error(Code::kInternal, "no socket is left for what runs in the background");
  }
  return {.watched = UniqueFd(ends[0]), .held = UniqueFd(ends[1])};
}

BackgroundRuns::~BackgroundRuns() {
  std::unordered_map<std::string, Run> left;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, run] : runs_) run.held.reset();
    left.swap(runs_);
  }
  left.clear();  // each joins
  join_ended();
}

void BackgroundRuns::start(const std::string& id, Line line, std::function<void()> work) {
  join_ended();
  const std::lock_guard lock(mutex_);  // what the thread does last waits until it is in its place
  Run run{.watched = std::move(line.watched), .held = std::move(line.held), .thread = {}};
  run.thread = std::jthread([this, id, work = std::move(work)] {
    work();
    const std::lock_guard end(mutex_);
    const auto it = runs_.find(id);
    if (it == runs_.end()) return;  // whoever took it away joins
    ended_.push_back(std::move(it->second));
    runs_.erase(it);
  });
  runs_.emplace(id, std::move(run));
}

bool BackgroundRuns::cancel(const std::string& id) {
  Run run;
  {
    const std::lock_guard lock(mutex_);
    const auto it = runs_.find(id);
    if (it == runs_.end()) return false;
    run = std::move(it->second);
    runs_.erase(it);
  }
  run.held.reset();
  run.thread.join();
  return true;
}

void BackgroundRuns::join_ended() {
  std::vector<Run> ended;
  const std::lock_guard lock(mutex_);
  ended.swap(ended_);
}

}  // namespace tgi::http
