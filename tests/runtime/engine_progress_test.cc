// What the engine tells of its progress: steps that ended, and whether one could.
#include <atomic>

#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"

namespace tgi {
namespace {

// Steps that end when they may.
class GatedWorkers final : public WorkerGroup {
 public:
  explicit GatedWorkers(std::atomic<bool>& open) : open_(open) {}
  int max_steps_in_flight() const override { return workers_.max_steps_in_flight(); }
  Ticket submit(const Batch& batch) override { return workers_.submit(batch); }
  void sample(Ticket ticket, const TokenMasks& masks) override { workers_.sample(ticket, masks); }
  const StepResult& wait(Ticket ticket) override {
    while (!open_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return workers_.wait(ticket);
  }

 private:
  std::atomic<bool>& open_;
  FakeWorkers workers_{FakeOptions{}};
};

template <typename Condition>
bool becomes(Condition condition) {
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  while (!condition() && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

}  // namespace

TEST_CASE("a step that hangs shows as work without progress, though nobody can ask the engine") {
  std::atomic<bool> open = false;
  Engine engine(small_engine(), std::make_unique<GatedWorkers>(open), kTokenizer);
  CHECK_FALSE(engine.progress().has_work);
  Answer answer;
  engine.submit(request_of("abc", 5), std::make_unique<AnswerSink>(answer));
  CHECK(engine.progress().has_work);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(engine.progress().has_work);
  CHECK(engine.progress().num_steps == 0);
  open = true;
  REQUIRE(answer.wait_for_end());
  CHECK(engine.progress().num_steps >= 5);
  CHECK(becomes([&] { return !engine.progress().has_work; }));
}

TEST_CASE("a request that its reader holds up is no work") {
  std::atomic<bool> open = true;
  EngineOptions options = small_engine();
  options.num_blocks = 400;
  Answer answer;  // outlives the engine, which answers it at its end
  Engine engine(options, std::make_unique<GatedWorkers>(open), kTokenizer);
  engine.submit(request_of("abc", Engine::kMaxUnacknowledged + 50),
                std::make_unique<AnswerSink>(answer));
  REQUIRE(answer.wait_for_events(Engine::kMaxUnacknowledged));
  CHECK(becomes([&] { return !engine.progress().has_work; }));
  CHECK(engine.num_live_requests() == 1);
  CHECK_FALSE(answer.wait_for_end(0));
}

}  // namespace tgi
