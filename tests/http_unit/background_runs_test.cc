// What runs without its client: how it ends, and that nothing of it stays.
#include "cmd/http/background_runs.h"

#include <poll.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace tgi::http {
namespace {

std::ptrdiff_t count_descriptors() {
  const std::filesystem::directory_iterator open("/proc/self/fd");
  return std::distance(begin(open), end(open));
}

template <typename Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

// Waits for the end of the line; the run is told by that.
void wait_for_end_of(int watched) {
  pollfd waits{.fd = watched, .events = POLLRDHUP, .revents = 0};
  (void)::poll(&waits, 1, -1);
}

}  // namespace

TEST_CASE("a run that has ended holds no descriptor, whether another one begins or not") {
  BackgroundRuns runs;
  const std::ptrdiff_t before = count_descriptors();
  std::atomic<int> num_done{0};
  for (int i = 0; i < 20; ++i) {
    runs.start(std::to_string(i), BackgroundRuns::open_line(), [&] { ++num_done; });
  }
  CHECK(comes_true([&] { return num_done == 20 && count_descriptors() == before; }));
}

TEST_CASE("all who end a run are told when it has ended") {
  BackgroundRuns runs;
  CHECK_FALSE(runs.cancel("a"));
  std::atomic<bool> has_ended{false};
  BackgroundRuns::Line line = BackgroundRuns::open_line();
  const int watched = line.watched.get();
  runs.start("a", std::move(line), [&, watched] {
    wait_for_end_of(watched);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the others ask meanwhile
    has_ended = true;
  });
  std::atomic<int> num_early{0};
  {
    std::vector<std::jthread> askers;
    for (int i = 0; i < 4; ++i) {
      askers.emplace_back([&] {
        runs.cancel("a");
        if (!has_ended) ++num_early;
      });
    }
  }
  CHECK(has_ended);
  CHECK(num_early == 0);
  CHECK_FALSE(runs.cancel("a"));
}

TEST_CASE("work that throws takes nothing else with it") {
  BackgroundRuns runs;
  runs.start("a", BackgroundRuns::open_line(), [] { throw std::runtime_error("no memory"); });
  CHECK(comes_true([&] { return !runs.cancel("a"); }));
}

TEST_CASE("those that run are ended with the place where they run") {
  std::atomic<int> num_ended{0};
  {
    BackgroundRuns runs;
    for (const char* id : {"a", "b"}) {
      BackgroundRuns::Line line = BackgroundRuns::open_line();
      const int watched = line.watched.get();
      runs.start(id, std::move(line), [&, watched] {
        wait_for_end_of(watched);
        ++num_ended;
      });
    }
  }
  CHECK(num_ended == 2);
}

}  // namespace tgi::http
