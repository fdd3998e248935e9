// Ranks that are watched: who is named when a step does not end, and when a link breaks.
#include "cuda/link_watch.h"

#include <atomic>
#include <thread>

#include "tests/catch.h"

namespace tgi::cuda {
namespace {

using namespace std::chrono_literals;

class FakeRank final : public WatchedRank {
 public:
  explicit FakeRank(int rank) : rank_(rank) {}
  int rank() const override { return rank_; }
  const StepClock& clock() const override { return clock_; }
  std::optional<std::string> link_error() override {
    if (broken) return "the cable is out";
    return std::nullopt;
  }
  void abort(int failed_rank, const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    ++num_aborts_;
    failed_rank_ = failed_rank;
    reason_ = reason;
  }
  // "rank: reason"; "" when nobody failed within `timeout`.
  std::string wait(std::chrono::milliseconds timeout = 10s) const {
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (std::chrono::steady_clock::now() < end) {
      {
        const std::lock_guard lock(mutex_);
        if (num_aborts_ > 0) return std::to_string(failed_rank_) + ": " + reason_;
      }
      std::this_thread::sleep_for(1ms);
    }
    return "";
  }
  int num_aborts() const {
    const std::lock_guard lock(mutex_);
    return num_aborts_;
  }

  StepClock clock_;
  std::atomic<bool> broken = false;

 private:
  const int rank_;
  mutable std::mutex mutex_;
  int num_aborts_ = 0;
  int failed_rank_ = -1;
  std::string reason_;
};

struct Watched {
  FakeRank ranks[2] = {FakeRank(0), FakeRank(1)};
  LinkWatch watch{100ms};
  Watched() {
    for (FakeRank& rank : ranks) watch.add(&rank);
  }
  ~Watched() {
    for (FakeRank& rank : ranks) watch.remove(&rank);
  }
};

}  // namespace

TEST_CASE("idle ranks, and ranks whose steps end, may take as long as they like") {
  Watched watched;
  CHECK(watched.ranks[0].wait(250ms).empty());
  // One step after the other, two in flight: longer than the deadline together.
  for (FakeRank& rank : watched.ranks) rank.clock_.begin();
  for (int i = 0; i < 8; ++i) {
    for (FakeRank& rank : watched.ranks) rank.clock_.begin();
    std::this_thread::sleep_for(40ms);
    for (FakeRank& rank : watched.ranks) rank.clock_.end();
  }
  for (FakeRank& rank : watched.ranks) rank.clock_.end();
  CHECK(watched.ranks[0].wait(250ms).empty());
}

TEST_CASE("a rank that does not come is named to all, once") {
  Watched watched;
  watched.ranks[0].clock_.begin();  // rank 1 never begins
  CHECK_THAT(watched.ranks[0].wait(),
             Catch::StartsWith("1: ") && Catch::Contains("within 0.1 s") &&
                 Catch::Contains("rank 1 has begun 0 steps and ended 0, rank 0 1 and 0"));
  CHECK(watched.ranks[1].wait() == watched.ranks[0].wait());
  std::this_thread::sleep_for(250ms);
  CHECK(watched.ranks[0].num_aborts() == 1);
}

TEST_CASE("a broken link is named to all though nothing runs") {
  Watched watched;
  watched.ranks[1].broken = true;
  CHECK(watched.ranks[0].wait() == "1: the cable is out");
}

}  // namespace tgi::cuda
