// The job that runs and the one that comes right behind it.
#include "daemon/quantize_jobs.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "tests/catch.h"

namespace tgi::daemon {
namespace {

constexpr int kRounds = 2000;

// "short" ends at once, every other job when it is stopped.
ipc::OrderedJson fake_work(const ipc::QuantizeParams& params,
                           const std::function<void(ipc::ProgressEvent&&)>& /*on_progress*/,
                           const std::stop_token& stop) {
  if (params.model == "short") return {{"done", true}};
  while (!stop.stop_requested()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  throw Error(Code::kCancelled, "stopped");
}

ipc::QuantizeParams job(const std::string& model) {
  ipc::QuantizeParams out;
  out.model = model;
  return out;
}

// Waits for the last message of a session.
Outgoing last_of(Mailbox<Outgoing>& outbox, uint64_t session) {
  std::vector<Outgoing> items;
  for (int i = 0; i < 10000; ++i) {
    outbox.drain(items);
    for (Outgoing& item : items) {
      const bool attaches = std::holds_alternative<AttachedJob>(item.message);
      if (item.session == session && !attaches) return std::move(item);
    }
    outbox.wait(10);
  }
  FAIL("no answer");
  return {};
}

Code refusal_of(QuantizeJobs& jobs) {
  try {
    jobs.start(3, job("third"));
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("a third job was taken while the second ran");
  return Code::kInternal;
}

}  // namespace

// The thread of the job before may still be on its way out: nothing that it does may make room.
TEST_CASE("a job that began right after another one keeps its place") {
  Mailbox<Outgoing> outbox(1000);
  for (int round = 0; round < kRounds; ++round) {
    QuantizeJobs jobs(outbox, fake_work);
    jobs.start(1, job("short"));
    CHECK(std::holds_alternative<ipc::OrderedJson>(last_of(outbox, 1).message));
    jobs.start(2, job("long"));
    for (int i = 0; i < 3; ++i) {
      REQUIRE(refusal_of(jobs) == Code::kOverloaded);
      std::this_thread::yield();
    }
    jobs.stop_all();
    const Outgoing ended = last_of(outbox, 2);
    REQUIRE(std::holds_alternative<Error>(ended.message));
    CHECK(std::get<Error>(ended.message).code() == Code::kCancelled);
  }
}

TEST_CASE("after stop_all no job begins") {
  Mailbox<Outgoing> outbox(1000);
  QuantizeJobs jobs(outbox, fake_work);
  jobs.stop_all();
  CHECK_THROWS_WITH(jobs.start(1, job("short")), Catch::Contains("stopping"));
}

}  // namespace tgi::daemon
