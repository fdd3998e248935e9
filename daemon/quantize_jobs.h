// The jobs of `tgi quantize`: one at a time, on a thread of its own with the lowest priority,
// beside a model that goes on serving. The store hears of each.
//
// All methods are called by the I/O thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>

#include "base/mailbox.h"
#include "daemon/session.h"
#include "ipc/quantize_job.h"

namespace tgi {

class QuantizeJobs {
 public:
  explicit QuantizeJobs(Mailbox<Outgoing>& outbox) : outbox_(outbox) {}
  ~QuantizeJobs();  // stops the job and waits for it

  // Progress, result or error go to the session, whose end stops the job. Throws kOverloaded while
  // another one runs, or after stop_all.
  void start(uint64_t session, const ipc::QuantizeParams& params);

  // The daemon is about to end: the job ends soon with an error that says so, no other begins.
  void stop_all();

 private:
  void run(uint64_t session, const ipc::QuantizeParams& params, std::stop_token stop);

  Mailbox<Outgoing>& outbox_;
  std::atomic<bool> is_running_{false};
  std::atomic<bool> is_stopping_{false};
  std::shared_ptr<std::stop_source> stop_;
  std::jthread thread_;
};

}  // namespace tgi
