#include "base/give_way.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/catch.h"

namespace tgi {
namespace {

int own_priority() {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()));
}

}  // namespace

TEST_CASE("long work gives way, and short work and whoever waits for it do not") {
  const int before = own_priority();
  int at_first = -1;
  int later = before;
  run_giving_way([&] {
    at_first = own_priority();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (later == before && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      later = own_priority();
    }
  });
  CHECK(at_first == before);
  CHECK(later == std::max(before, 10));
  CHECK(own_priority() == before);
}

TEST_CASE("what the work throws reaches whoever waits for it") {
  CHECK_THROWS_WITH(run_giving_way([] { throw std::runtime_error("of the work"); }), "of the work");
}

}  // namespace tgi
