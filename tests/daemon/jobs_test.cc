#include "daemon/jobs.h"

#include <atomic>
#include <catch2/catch.hpp>

namespace tgi {

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

}  // namespace tgi
