// Loops on the thread pool: every task once, visible results, errors, and an idle pool that sleeps.
#include "engine/cpu/thread_pool.h"

#include <time.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "engine/cpu/host_resources.h"
#include "tests/catch.h"

namespace tgi {

TEST_CASE("each task runs once and its writes are seen after the loop") {
  for (const int num_threads : {1, 2, 3, 5}) {
    ThreadPool pool(num_threads);
    REQUIRE(pool.num_threads() == num_threads);
    // Plain ints: a race would be a data race too.
    std::vector<int> counts(1000);
    for (int round = 1; round <= 200; ++round) {
      const int64_t num_tasks = 1 + round * 37 % 1000;
      std::fill(counts.begin(), counts.end(), 0);
      pool.parallel_for(num_tasks, [&](int64_t task, int thread) {
        if (thread < 0 || thread >= num_threads) throw std::logic_error("thread out of range");
        ++counts[static_cast<size_t>(task)];
      });
      REQUIRE(std::count(counts.begin(), counts.end(), 1) == num_tasks);
      REQUIRE(std::accumulate(counts.begin(), counts.end(), 0) == num_tasks);
    }
  }
}

TEST_CASE("threads of a pinned pool stay on a processor each") {
  const std::vector<int> allowed = affinity_cpus();
  // The caller is pinned for good, so it must not be the thread of the other tests.
  std::atomic<int> num_wrong = 0;
  std::thread caller([&] {
    ThreadPool pool(static_cast<int>(std::min<size_t>(allowed.size(), 2)), true);
    pool.pin_caller();
    for (int round = 0; round < 50; ++round) {
      pool.parallel_for(8, [&](int64_t, int) {
        if (affinity_cpus().size() != 1) ++num_wrong;
      });
    }
  });
  caller.join();
  CHECK(num_wrong == 0);
  CHECK(affinity_cpus() == allowed);
}

TEST_CASE("pools beside each other are pinned to other processors, as far as there are any") {
  const std::vector<int> order = spread_over_cores(affinity_cpus());
  const auto count = static_cast<int>(order.size());
  for (const int first : {0, 1, count, 2 * count + 1}) {
    std::vector<int> pinned_to;
    std::thread caller([&] {
      ThreadPool pool(1, true, first);
      pool.pin_caller();
      pinned_to = affinity_cpus();
    });
    caller.join();
    CHECK(pinned_to == std::vector<int>{order[static_cast<size_t>(first % count)]});
  }
}

TEST_CASE("a thread never runs two tasks at a time") {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> busy(4);
  std::atomic<int> num_clashes = 0;
  for (int round = 0; round < 50; ++round) {
    pool.parallel_for(64, [&](int64_t, int thread) {
      if (busy[static_cast<size_t>(thread)].fetch_add(1) != 0) ++num_clashes;
      std::this_thread::yield();
      busy[static_cast<size_t>(thread)].fetch_sub(1);
    });
  }
  CHECK(num_clashes == 0);
}

TEST_CASE("what a task throws comes out of the loop, and the pool goes on") {
  ThreadPool pool(3);
  std::atomic<int> num_run = 0;
  CHECK_THROWS_WITH(pool.parallel_for(20,
                                      [&](int64_t task, int) {
                                        ++num_run;
                                        if (task == 7) throw std::runtime_error("task seven");
                                      }),
                    "task seven");
  CHECK(num_run == 20);
  pool.parallel_for(5, [&](int64_t, int) { ++num_run; });
  CHECK(num_run == 25);
}

TEST_CASE("no tasks, no calls") {
  ThreadPool pool(2);
  pool.parallel_for(0, [](int64_t, int) { FAIL("called"); });
}

TEST_CASE("sleeping threads wake for work") {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // longer than they spin
    std::atomic<int> sum = 0;
    pool.parallel_for(30, [&](int64_t task, int) { sum += static_cast<int>(task); });
    CHECK(sum == 435);
  }
}

TEST_CASE("an idle pool takes no processor time") {
  ThreadPool pool(4);
  pool.parallel_for(8, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto cpu_time_ms = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
  };
  const double before = cpu_time_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(cpu_time_ms() - before < 3.0);  // 1 %
}

}  // namespace tgi
