// Several ranks as one: on workers without a model, which reduce among themselves as real ones do,
// so that a rank that is not there would be waited for.
#include "engine/runtime/rank_group.h"

#include <time.h>

#include <set>

#include "engine/cpu/host_communicator.h"
#include "tests/catch.h"
#include "tests/runtime/engine_fixture.h"

namespace tgi::rank_group_test {
namespace {

struct RankFault {
  int rank = -1;
  int64_t fails_at_step = -1;
  bool fails_in_wait = false;
  bool draws_wrong = false;
};

// What the ranks of a test have done.
struct Seen {
  std::mutex mutex;
  std::vector<std::set<std::thread::id>> threads;  // that used each rank
  int num_alive = 0;
  int num_waits = 0;
  int num_prepared = 0;
};

class FakeRank final : public WorkerGroup {
 public:
  FakeRank(std::unique_ptr<Communicator> communicator,
           FakeOptions options,
           RankFault fault,
           Seen& seen)
      : communicator_(std::move(communicator)),
        fault_(fault.rank == communicator_->rank() ? fault : RankFault()),
        depth_(options.depth),
        fake_(options),
        seen_(seen) {
    note_thread();
    const std::lock_guard lock(seen_.mutex);
    ++seen_.num_alive;
  }
  ~FakeRank() override {
    note_thread();
    const std::lock_guard lock(seen_.mutex);
    --seen_.num_alive;
  }

  int max_steps_in_flight() const override { return depth_; }

  Ticket submit(const Batch& batch) override {
    note_thread();
    ++num_steps_;
    if (!fault_.fails_in_wait) maybe_fail();
    float sum = 1;
    communicator_->all_reduce_sum({&sum, DType::kF32, 1, 1, 1});
    if (sum != static_cast<float>(communicator_->world_size()))
      throw Error(Code::kInternal, "wrong sum");
    const Ticket ticket = fake_.submit(batch);
    // Not the group's: devices count as they like.
    return ticket + 100 * static_cast<Ticket>(communicator_->rank());
  }

  void sample(Ticket ticket, const TokenMasks& masks) override {
    note_thread();
    fake_.sample(own(ticket), masks);
  }

  const StepResult& wait(Ticket ticket) override {
    note_thread();
    {
      const std::lock_guard lock(seen_.mutex);
      ++seen_.num_waits;
    }
    if (fault_.fails_in_wait) maybe_fail();
    result_ = fake_.wait(own(ticket));
    if (fault_.draws_wrong && !result_.sampled.empty()) ++result_.sampled.back().token.id;
    return result_;
  }

  bool prepare_step() override {
    note_thread();
    if (num_prepared_ == kSizes) return false;
    ++num_prepared_;
    const std::lock_guard lock(seen_.mutex);
    ++seen_.num_prepared;
    return true;
  }
  std::vector<int32_t> prepared_rows() const override {
    return std::vector<int32_t>(static_cast<size_t>(num_prepared_), 8);
  }

  void abort(int failed_rank, const std::string& reason) override {
    communicator_->abort(failed_rank, reason);
  }

  static constexpr int kSizes = 3;  // of steps that can be made ready

 private:
  void note_thread() {
    const std::lock_guard lock(seen_.mutex);
    const auto rank = static_cast<size_t>(communicator_->rank());
    if (seen_.threads.size() <= rank) seen_.threads.resize(rank + 1);
    seen_.threads[rank].insert(std::this_thread::get_id());
  }
  Ticket own(Ticket ticket) const {
    return ticket - 100 * static_cast<Ticket>(communicator_->rank());
  }
  void maybe_fail() const {
    if (num_steps_ == fault_.fails_at_step) throw Error(Code::kOutOfMemory, "no room on this one");
  }

  std::unique_ptr<Communicator> communicator_;
  const RankFault fault_;
  const int depth_;
  FakeWorkers fake_;
  Seen& seen_;
  int64_t num_steps_ = 0;
  int num_prepared_ = 0;
  StepResult result_;
};

std::unique_ptr<RankGroup> make_group(int num_ranks,
                                      Seen& seen,
                                      FakeOptions options = {},
                                      RankFault fault = {}) {
  auto threads = std::make_unique<RankThreads>(num_ranks);
  auto communicators = make_host_communicators(num_ranks);
  std::vector<std::unique_ptr<WorkerGroup>> workers(communicators.size());
  threads->run([&](int rank) {
    const auto index = static_cast<size_t>(rank);
    workers[index] =
        std::make_unique<FakeRank>(std::move(communicators[index]), options, fault, seen);
  });
  return std::make_unique<RankGroup>(std::move(threads), std::move(workers));
}

// The prompt "hello" in slot 0, then its next token, and so on: `position` of the token drawn.
Batch step_for(const std::vector<int32_t>& prompt, int32_t position) {
  Batch batch;
  batch.clear();
  if (position == static_cast<int32_t>(prompt.size())) {
    batch.slot_starts.push_back({.slot = 0, .sampling = {}, .token_ids = prompt});
  }
  batch.sample_rows.push_back({.row = 0, .slot = 0, .position = position});
  return batch;
}

const std::vector<int32_t> kPrompt = {'h', 'e', 'l', 'l', 'o'};

std::string error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return (error.code() == Code::kDeviceLost ? "" : "(of another code) ") +
           std::string(error.what());
  }
  return "";
}

}  // namespace

TEST_CASE("every rank runs every batch, always on its own thread; rank 0 on the caller's") {
  for (const int num_ranks : {1, 2, 4}) {
    Seen seen;
    {
      const auto group = make_group(num_ranks, seen);
      std::string text;
      for (int32_t i = 0; i < 20; ++i) {
        const Ticket ticket = group->submit(step_for(kPrompt, 5 + i));
        group->sample(ticket, {});
        text += static_cast<char>(group->wait(ticket).sampled.at(0).token.id);
      }
      CHECK(text == expected_text("hello", 20));
      CHECK(seen.num_alive == num_ranks);
    }
    CHECK(seen.num_alive == 0);
    std::set<std::thread::id> all;
    for (const auto& threads : seen.threads) {
      CHECK(threads.size() == 1);
      all.insert(*threads.begin());
    }
    CHECK(all.size() == static_cast<size_t>(num_ranks));
    CHECK(seen.threads[0].contains(std::this_thread::get_id()));
  }
}

TEST_CASE("steps are made ready by all ranks together, each on its own thread") {
  Seen seen;
  const auto group = make_group(3, seen);
  for (int i = 0; i < FakeRank::kSizes; ++i) CHECK(group->prepare_step());
  CHECK_FALSE(group->prepare_step());
  CHECK(seen.num_prepared == 3 * FakeRank::kSizes);
  CHECK(group->prepared_rows().size() == FakeRank::kSizes);
  for (const auto& threads : seen.threads) CHECK(threads.size() == 1);
}

TEST_CASE("a rank that fails ends the step of all, is named, and nothing runs after it") {
  for (const bool in_wait : {false, true}) {
    for (const int failing : {0, 1, 3}) {
      Seen seen;
      const auto group =
          make_group(4, seen, {}, {.rank = failing, .fails_at_step = 2, .fails_in_wait = in_wait});
      run_step(*group, step_for(kPrompt, 5));
      const std::string expected = fmt::format("rank {}: no room on this one", failing);
      const auto step = [&] { run_step(*group, step_for(kPrompt, 6)); };
      CHECK(error_of(step) == expected);
      CHECK(error_of(step) == expected);
    }
  }
}

TEST_CASE("ranks that draw different tokens are found out") {
  Seen seen;
  const auto group = make_group(3, seen, {}, {.rank = 2, .draws_wrong = true});
  const Ticket ticket = group->submit(step_for(kPrompt, 5));
  group->sample(ticket, {});
  const int32_t right = 'a' + fake_next_token(kPrompt, 26);
  CHECK(error_of([&] { group->wait(ticket); }) ==
        fmt::format("ranks draw different tokens: rank 0 drew {}, rank 2 drew {}, in row 0 of 1 of "
                    "the step",
                    right, right + 1));
  CHECK_THAT(error_of([&] { group->submit(step_for(kPrompt, 6)); }),
             Catch::StartsWith("ranks draw different tokens"));
}

TEST_CASE("two steps are in flight on all ranks where their devices take two") {
  Seen seen;
  const auto group =
      make_group(2, seen, {.depth = 2, .step_time = std::chrono::microseconds(2000)});
  CHECK(group->max_steps_in_flight() == 2);
  const auto start = [&](int32_t step) {
    const Ticket ticket = group->submit(step_for(kPrompt, step));
    group->sample(ticket, {});
    return ticket;
  };
  Ticket ticket = start(5);
  Ticket next = start(6);
  CHECK(seen.num_waits == 0);
  std::string text;
  for (int32_t i = 2; i < 12; ++i) {
    text += static_cast<char>(group->wait(ticket).sampled.at(0).token.id);
    ticket = next;
    next = start(5 + i);
  }
  CHECK(text == expected_text("hello", 10));
  // Dropped with two steps that nobody waits for.
}

TEST_CASE("an engine on several ranks answers as on one, and tells everyone when a rank is lost") {
  for (const int failing : {-1, 1}) {
    Seen seen;
    std::atomic<int> num_failures = 0;
    EngineOptions options = small_engine();
    options.on_failure = [&] { ++num_failures; };
    {
      Engine engine(options,
                    make_group(3, seen, {.depth = 2}, {.rank = failing, .fails_at_step = 9}),
                    kTokenizer);
      std::vector<std::unique_ptr<Answer>> answers;
      for (int i = 0; i < 8; ++i) {
        answers.push_back(std::make_unique<Answer>());
        engine.submit(request_of(std::string("prompt ") + static_cast<char>('a' + i), 20),
                      std::make_unique<AnswerSink>(*answers.back()));
      }
      for (int i = 0; i < 8; ++i) {
        Answer& answer = *answers[static_cast<size_t>(i)];
        REQUIRE(answer.wait_for_end());
        const std::string prompt = std::string("prompt ") + static_cast<char>('a' + i);
        if (failing < 0) {
          CHECK(answer.streamed == expected_text(prompt, 20));
        } else {
          REQUIRE(answer.error);
          CHECK(answer.error->code() == Code::kDeviceLost);
          CHECK(std::string(answer.error->what()) == "rank 1: no room on this one");
        }
      }
      wait_until_idle(engine);
      CHECK(engine.has_failed() == (failing >= 0));
    }
    CHECK(num_failures == (failing >= 0 ? 1 : 0));
    CHECK(seen.num_alive == 0);
  }
}

TEST_CASE("the first of several failures counts, and the others can see that there was one") {
  RankThreads threads(3);
  std::vector<std::string> told;
  threads.set_on_failure([&](int rank, const std::string& reason) {
    told.push_back(fmt::format("{} {}", rank, reason));
  });
  for (int round = 0; round < 20; ++round) {
    told.clear();
    CHECK_FALSE(threads.has_failed() != (round > 0));
    try {
      threads.run([&](int rank) {
        if (rank != 1) {
          while (!threads.has_failed()) std::this_thread::yield();
          throw Error(Code::kCancelled, "another one failed");
        }
        throw Error(Code::kNotFound, "gone");
      });
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == Code::kNotFound);
      CHECK(std::string(error.what()) == "rank 1: gone");
    }
    CHECK(told == std::vector<std::string>{"1 gone"});
  }
  threads.run([](int /*rank*/) {});
  CHECK_FALSE(threads.has_failed());
}

TEST_CASE("ranks without a step take next to no processor time") {
  RankThreads threads(4);
  threads.run([](int /*rank*/) {});
  const auto cpu_seconds = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  CHECK(cpu_seconds() - before < 0.05);
}

}  // namespace tgi::rank_group_test
