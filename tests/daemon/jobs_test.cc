#include "daemon/jobs.h"

#include <atomic>
#include <future>

#include "tests/catch.h"

namespace tgi::daemon {

TEST_CASE("jobs run everything that was posted, also what was still queued at the end") {
  std::atomic<int> done{0};
  {
    Jobs jobs(3);
    for (int i = 0; i < 1000; ++i) jobs.post([&done] { ++done; });
  }
  CHECK(done == 1000);
}

TEST_CASE("a job that throws does not take its thread with it") {
  std::atomic<int> done{0};
  {
    Jobs jobs(1);
    jobs.post([] { throw std::runtime_error("on purpose"); });
    jobs.post([&done] { ++done; });
  }
  CHECK(done == 1);
}

TEST_CASE(
    "what waits is dropped and told so, what runs goes on, what comes later is dropped at once") {
  std::atomic<int> done{0};
  std::atomic<int> dropped{0};
  std::promise<void> begun;
  std::promise<void> released;
  {
    Jobs jobs(1);
    const auto drop = [&dropped] { ++dropped; };
    jobs.post(
        [&] {
          begun.set_value();
          released.get_future().wait();
          ++done;
        },
        drop);
    begun.get_future().wait();
    for (int i = 0; i < 5; ++i) jobs.post([&done] { ++done; }, drop);
    jobs.post([&done] { ++done; });
    jobs.drop_waiting();
    CHECK(dropped == 5);
    CHECK(done == 0);
    jobs.post([&done] { ++done; }, drop);
    CHECK(dropped == 6);
    released.set_value();
  }
  CHECK(done == 1);
  CHECK(dropped == 6);
}

}  // namespace tgi::daemon
