// The jobs of `tgi quantize`: one at a time, on a thread of its own with the lowest priority,
// beside a model that goes on serving. The store hears of each.
//
// All methods are called by the I/O thread, and none but the destructor waits for a job.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <thread>

#include "base/mailbox.h"
#include "daemon/session.h"
#include "ipc/quantize_job.h"

namespace tgi::daemon {

// Does one job on the calling thread and returns its result. Throws kCancelled soon after `stop`.
ipc::OrderedJson run_quantize_job(const ipc::QuantizeParams& params,
                                  const std::function<void(ipc::ProgressEvent&&)>& on_progress,
                                  const std::stop_token& stop);

class QuantizeJobs {
 public:
  using Work = std::function<decltype(run_quantize_job)>;

  explicit QuantizeJobs(Mailbox<Outgoing>& outbox, Work work = run_quantize_job)
      : outbox_(outbox), work_(std::move(work)) {}
  ~QuantizeJobs();  // stops the job and waits for it

  // Progress, result or error go to the session, whose end stops the job. Throws kOverloaded while
  // another one runs, or after stop_all.
  void start(uint64_t session, const ipc::QuantizeParams& params);

  // The daemon is about to end: the job ends soon with an error that says so, no other begins.
  void stop_all();

 private:
  // What a thread says of itself says nothing of the job after it: each has flags of its own.
  struct Job {
    std::shared_ptr<std::stop_source> stop = std::make_shared<std::stop_source>();
    std::atomic<bool> is_running{true};  // until its last message is about to be sent
    std::atomic<bool> is_over{false};    // the thread does nothing any more: joining it is no wait
    std::jthread thread;
  };

  void run(Job& job, uint64_t session, const ipc::QuantizeParams& params);

  Mailbox<Outgoing>& outbox_;
  const Work work_;
  std::atomic<bool> is_stopping_{false};
  std::list<Job> jobs_;  // the one that runs, and those that were not over when last looked at
};

}  // namespace tgi::daemon
