// Requests and their adapters in the engine: nobody runs without his adapter, nothing in use
// leaves, everybody is answered, and nothing is left.
#include <random>

#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"

namespace tgi::adapters_test {
namespace {

class NoFiles final : public FileSource {
 public:
  std::optional<std::span<const std::byte>> find(const std::string& /*name*/) const override {
    return std::nullopt;
  }
  std::string describe(const std::string& name) const override { return name; }
};

std::shared_ptr<const HostAdapter> make_host(int32_t tag, int64_t bytes = 100) {
  auto out = std::make_shared<HostAdapter>();
  out->id = tag;
  out->name = "number " + std::to_string(tag);
  out->parts = {{LowRankPart{.site = tag, .first_output = bytes, .a = {}, .b = {}}}};
  out->device_bytes = bytes;
  out->files = std::make_shared<NoFiles>();
  return out;
}

EngineOptions engine_with_adapters(int32_t places) {
  EngineOptions options = small_engine();
  options.adapters = {.memory_bytes = 100 * places,
                      .max_active = places,
                      .cycle_time = std::chrono::milliseconds(3)};
  return options;
}

std::unique_ptr<Request> request_for(const std::shared_ptr<const HostAdapter>& adapter,
                                     std::string_view prompt,
                                     int32_t max_new_tokens) {
  auto request = request_of(prompt, max_new_tokens);
  request->adapter = adapter;
  return request;
}

TEST_CASE("every request runs with its adapter, on one step in flight and on two") {
  for (const int depth : {1, 2}) {
    auto workers = std::make_unique<FakeWorkers>(
        FakeOptions{.depth = depth, .adapter_time = std::chrono::microseconds(200)});
    FakeWorkers& fake = *workers;
    Engine engine(engine_with_adapters(3), std::move(workers), kTokenizer);
    std::vector<std::unique_ptr<Answer>> answers;
    for (int32_t i = 0; i < 300; ++i) {
      const int32_t tag = i % 12;
      answers.push_back(std::make_unique<Answer>());
      auto request = request_for(tag == 0 ? nullptr : make_host(tag), "prompt", 1 + i % 9);
      request->use_prefix_cache = tag != 0;  // so that what is cached is the adapters' alone
      engine.submit(std::move(request), std::make_unique<AnswerSink>(*answers.back()));
    }
    for (int32_t i = 0; i < 300; ++i) {
      const auto at = static_cast<size_t>(i);
      REQUIRE(answers[at]->wait_for_end());
      REQUIRE(answers[at]->done);
      const auto tag = static_cast<uint64_t>(i % 12);
      CHECK(answers[at]->done->best.text == expected_text("prompt", 1 + i % 9, 26, tag));
    }
    wait_until_idle(engine);
    // However few of them each step changes, what is told of all is right.
    const EngineStats stats = engine.stats();
    CHECK(stats.num_active_adapters <= 3);
    CHECK(stats.adapters.size() == 11);
    int32_t num_active = 0;
    for (const auto& [tag, standing] : stats.adapters) {
      CHECK(standing.num_running == 0);
      CHECK(standing.num_waiting == 0);
      CHECK_FALSE(standing.is_loading);
      num_active += standing.is_active ? 1 : 0;
    }
    CHECK(num_active == stats.num_active_adapters);
    for (int32_t tag = 1; tag < 12; ++tag) engine.forget_adapter(tag);
    const auto is_left = [&] {
      return fake.num_adapters() > 0 || !engine.stats().adapters.empty();
    };
    for (int i = 0; i < 2000 && is_left(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(fake.num_adapters() == 0);
    CHECK(engine.stats().adapter_bytes_used == 0);
    CHECK(engine.stats().num_blocks_cached == 0);
    CHECK(engine.stats().adapters.empty());
  }
}

TEST_CASE("an adapter that can't be made fails its requests alone, each time") {
  Engine engine(engine_with_adapters(2), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  for (int round = 0; round < 2; ++round) {
    Answer broken;
    Answer other;
    engine.submit(request_for(make_host(kFirstBrokenAdapter), "abc", 5),
                  std::make_unique<AnswerSink>(broken));
    engine.submit(request_for(make_host(2), "abc", 5), std::make_unique<AnswerSink>(other));
    REQUIRE(broken.wait_for_end());
    REQUIRE(broken.error);
    CHECK(broken.error->code() == Code::kAdapter);
    CHECK(std::string(broken.error->what()) == "adapter number 1000: the fake device is full");
    REQUIRE(other.wait_for_end());
    CHECK(other.done);
  }
  CHECK_FALSE(engine.has_failed());
  wait_until_idle(engine);
  CHECK(engine.stats().adapter_bytes_used == 100);
}

TEST_CASE("an adapter that can never fit is refused with the numbers") {
  Engine engine(engine_with_adapters(2), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer large;
  engine.submit(request_for(make_host(1, 201), "abc", 5), std::make_unique<AnswerSink>(large));
  REQUIRE(large.wait_for_end());
  REQUIRE(large.error);
  CHECK(large.error->code() == Code::kAdapter);
  CHECK_THAT(large.error->what(), Catch::Contains("--adapter-memory-fraction"));
  Engine without(small_engine(), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  Answer none;
  without.submit(request_for(make_host(1), "abc", 5), std::make_unique<AnswerSink>(none));
  REQUIRE(none.wait_for_end());
  REQUIRE(none.error);
  CHECK_THAT(none.error->what(), Catch::Contains("takes none"));
}

TEST_CASE("a pinned adapter is there before anybody asks, and stays") {
  auto workers = std::make_unique<FakeWorkers>(FakeOptions{});
  FakeWorkers& fake = *workers;
  Engine engine(engine_with_adapters(2), std::move(workers), kTokenizer);
  engine.pin_adapter(make_host(1));
  for (int i = 0; i < 2000 && fake.num_adapters() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int32_t tag = 2; tag < 6; ++tag) {
    Answer answer;
    engine.submit(request_for(make_host(tag), "abc", 3), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_end());
    CHECK(answer.done);
  }
  CHECK(engine.stats().adapters.at(1).is_active);
  engine.unpin_adapter(1);
}

TEST_CASE("who pinned an adapter that can't be made, or has no room, hears of it once") {
  Engine engine(engine_with_adapters(2), std::make_unique<FakeWorkers>(FakeOptions{}), kTokenizer);
  std::mutex mutex;
  std::vector<std::string> heard;
  const auto hear = [&](const Error& error) {
    const std::lock_guard lock(mutex);
    heard.push_back(error.what());
  };
  const auto num_heard = [&] {
    const std::lock_guard lock(mutex);
    return heard.size();
  };
  engine.pin_adapter(make_host(1), hear);
  const auto wait_until_heard = [&](size_t count) {
    for (int i = 0; i < 2000 && num_heard() < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  engine.pin_adapter(make_host(kFirstBrokenAdapter), hear);
  wait_until_heard(1);  // and its place is free again
  engine.pin_adapter(make_host(2, 201), hear);
  wait_until_heard(2);
  // What fails again for a request is no news of the pin.
  Answer broken;
  engine.submit(request_for(make_host(kFirstBrokenAdapter), "abc", 5),
                std::make_unique<AnswerSink>(broken));
  REQUIRE(broken.wait_for_end());
  const std::lock_guard lock(mutex);
  REQUIRE(heard.size() == 2);
  std::ranges::sort(heard);
  CHECK(heard[0] == "adapter number 1000: the fake device is full");
  CHECK_THAT(heard[1], Catch::Contains("adapter number 2: it needs "));
  CHECK(engine.stats().adapters.at(1).is_pinned);
}

TEST_CASE("pinned adapters that fill all places answer, and who waits for another one is told") {
  Engine engine(
      engine_with_adapters(2),
      std::make_unique<FakeWorkers>(FakeOptions{.step_time = std::chrono::milliseconds(2)}),
      kTokenizer);
  // Two run, a third waits; then those two are pinned.
  Answer first;
  Answer second;
  Answer third;
  engine.submit(request_for(make_host(1), "abc", 40), std::make_unique<AnswerSink>(first));
  engine.submit(request_for(make_host(2), "abc", 40), std::make_unique<AnswerSink>(second));
  engine.submit(request_for(make_host(3), "abc", 3), std::make_unique<AnswerSink>(third));
  engine.pin_adapter(make_host(1));
  engine.pin_adapter(make_host(2));
  REQUIRE(third.wait_for_end());
  REQUIRE(third.error);
  CHECK(third.error->code() == Code::kAdapter);
  CHECK(std::string(third.error->what()) ==
        "adapter number 3: pinned adapters have all 2 places that there are; unpin one, or give "
        "--max-active-adapters more");
  REQUIRE(first.wait_for_end());
  CHECK(first.done);
  REQUIRE(second.wait_for_end());
  CHECK(second.done);
  for (const int32_t tag : {1, 2}) {
    Answer again;
    engine.submit(request_for(make_host(tag), "abc", 3), std::make_unique<AnswerSink>(again));
    REQUIRE(again.wait_for_end());
    CHECK(again.done);
  }
}

TEST_CASE("a forgotten adapter is gone when the last request that has it is") {
  for (const int depth : {1, 2}) {
    const FakeOptions options{.depth = depth, .step_time = std::chrono::milliseconds(2)};
    Engine engine(engine_with_adapters(2), std::make_unique<FakeWorkers>(options), kTokenizer);
    Answer answer;
    engine.submit(request_for(make_host(1), "abc", 60), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_events(3));
    std::atomic<int> num_gone = 0;
    std::atomic<bool> was_answered = false;
    engine.forget_adapter(1, [&] {
      const std::lock_guard lock(answer.mutex);
      was_answered = answer.done != nullptr;
      ++num_gone;
    });
    // One that nobody has is gone at once.
    std::atomic<bool> is_other_gone = false;
    engine.forget_adapter(2, [&] { is_other_gone = true; });
    for (int i = 0; i < 2000 && !is_other_gone; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(is_other_gone);
    CHECK(num_gone == 0);
    REQUIRE(answer.wait_for_end());
    REQUIRE(answer.done);
    CHECK(answer.done->best.text == expected_text("abc", 60, 26, 1));
    for (int i = 0; i < 2000 && num_gone == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(num_gone == 1);
    CHECK(was_answered);
  }
}

TEST_CASE("who waits for an adapter to go hears of it when the engine ends, too") {
  std::atomic<int> num_gone = 0;
  Answer answer;
  {
    const FakeOptions options{.step_time = std::chrono::milliseconds(2)};
    Engine engine(engine_with_adapters(2), std::make_unique<FakeWorkers>(options), kTokenizer);
    engine.submit(request_for(make_host(1), "abc", 200), std::make_unique<AnswerSink>(answer));
    REQUIRE(answer.wait_for_events(1));
    engine.forget_adapter(1, [&] { ++num_gone; });
  }
  CHECK(answer.error);
  CHECK(num_gone == 1);
}

TEST_CASE("chaos: requests come and go, loads fail, adapters are pinned and forgotten") {
  auto workers = std::make_unique<FakeWorkers>(
      FakeOptions{.depth = 2, .adapter_time = std::chrono::microseconds(50)});
  FakeWorkers& fake = *workers;
  Engine engine(engine_with_adapters(4), std::move(workers), kTokenizer);
  std::mt19937 random(3);
  struct One {
    std::unique_ptr<Answer> answer;
    uint64_t id;
    int32_t tag;
    int32_t count;
    bool is_cancelled = false;
  };
  std::vector<One> all;
  int32_t next_tag = 40;
  std::vector<int32_t> tags;
  for (int32_t tag = 1; tag <= 30; ++tag) tags.push_back(tag);
  for (int step = 0; step < 3000; ++step) {
    const auto pick = random() % 20;
    if (pick == 0 && !all.empty()) {
      One& one = all[random() % all.size()];
      one.is_cancelled = true;
      engine.cancel(one.id);
    } else if (pick == 1) {
      // Unloaded; the name is another adapter from now on.
      auto& tag = tags[random() % tags.size()];
      engine.forget_adapter(tag);
      tag = next_tag++;
    } else if (pick == 2) {
      engine.pin_adapter(make_host(tags[0]));
    } else if (pick == 3) {
      engine.unpin_adapter(tags[0]);
    } else {
      const bool is_broken = random() % 10 == 0;
      const int32_t tag = is_broken ? kFirstBrokenAdapter : tags[random() % tags.size()];
      One one{.answer = std::make_unique<Answer>(),
              .id = 0,
              .tag = tag,
              .count = static_cast<int32_t>(1 + random() % 6)};
      auto request = request_for(make_host(tag), "chaos", one.count);
      one.id = request->id;
      engine.submit(std::move(request), std::make_unique<AnswerSink>(*one.answer));
      all.push_back(std::move(one));
    }
  }
  for (One& one : all) {
    if (one.is_cancelled) continue;
    REQUIRE(one.answer->wait_for_end());
    if (one.tag >= kFirstBrokenAdapter) {
      CHECK(one.answer->error);
    } else {
      REQUIRE(one.answer->done);
      CHECK(one.answer->done->best.text ==
            expected_text("chaos", one.count, 26, static_cast<uint64_t>(one.tag)));
    }
  }
  wait_until_idle(engine);
  CHECK_FALSE(engine.has_failed());
  for (const int32_t tag : tags) engine.forget_adapter(tag);
  for (int i = 0; i < 5000 && fake.num_adapters() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(fake.num_adapters() == 0);
  const EngineStats stats = engine.stats();
  CHECK(stats.adapter_bytes_used == 0);
  CHECK(stats.num_active_adapters == 0);
  CHECK(stats.num_blocks_used == 0);
}

TEST_CASE("an engine that ends while adapters load takes them along") {
  Answer answer;
  {
    Engine engine(
        engine_with_adapters(6),  // room beside the pinned ones, or the request would be refused
        std::make_unique<FakeWorkers>(FakeOptions{.adapter_time = std::chrono::milliseconds(100)}),
        kTokenizer);
    for (int32_t tag = 1; tag < 5; ++tag) engine.pin_adapter(make_host(tag));
    engine.submit(request_for(make_host(7), "abc", 3), std::make_unique<AnswerSink>(answer));
  }
  REQUIRE(answer.error);
  CHECK(answer.error->code() == Code::kCancelled);
}

}  // namespace
}  // namespace tgi::adapters_test
