// When a service manager is told that the daemon lives: whether steps end while there is work.
#include "daemon/progress_watch.h"

#include "tests/catch.h"

namespace tgi {
namespace {

using namespace std::chrono_literals;

// A watch of 10 s, looked at every second.
class Watched {
 public:
  // Whether it got on at each look.
  bool look(int times, bool has_work, int64_t num_steps) {
    bool gets_on = true;
    for (int i = 0; i < times; ++i) {
      now_ += 1s;
      gets_on = watch_.gets_on({.num_steps = num_steps, .has_work = has_work}, now_);
    }
    return gets_on;
  }

 private:
  ProgressWatch watch_{10s};
  std::chrono::steady_clock::time_point now_{1h};
};

}  // namespace

TEST_CASE("an idle engine gets on for ever, and its first work has the whole time") {
  Watched watched;
  CHECK(watched.look(1000, false, 7));
  CHECK(watched.look(10, true, 7));
  CHECK(watched.look(1, false, 7));  // cancelled
  CHECK(watched.look(10, true, 7));
}

TEST_CASE("work without a step for longer than the time is no getting on, until a step ends") {
  Watched watched;
  CHECK(watched.look(11, true, 7));
  CHECK_FALSE(watched.look(1, true, 7));
  CHECK_FALSE(watched.look(100, true, 7));
  CHECK(watched.look(1, true, 8));
  CHECK(watched.look(10, true, 8));
  CHECK_FALSE(watched.look(1, true, 8));
  CHECK(watched.look(1, false, 8));
}

TEST_CASE("steps that each take less than the time may go on for ever, and zero means never") {
  Watched watched;
  for (int64_t step = 0; step < 50; ++step) CHECK(watched.look(9, true, step));
  ProgressWatch never(0ms);
  const std::chrono::steady_clock::time_point begin{1h};
  CHECK(never.gets_on({.num_steps = 1, .has_work = true}, begin));
  CHECK(never.gets_on({.num_steps = 1, .has_work = true}, begin + 1000h));
}

}  // namespace tgi
