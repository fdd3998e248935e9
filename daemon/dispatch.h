// Method name to handler: one row each. Handlers run on the I/O thread and must not block; what
// takes time goes to a job, whose answer comes back through the outbox.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/mailbox.h"
#include "daemon/jobs.h"
#include "daemon/model_host.h"
#include "daemon/options.h"
#include "daemon/quantize_jobs.h"
#include "daemon/session.h"
#include "ipc/protocol.h"

namespace tgi {

// What handlers work with. All of it outlives every session.
struct Services {
  const Options& options;
  ModelHost& models;
  Jobs& intake_jobs;
  Jobs& load_jobs;  // one thread: one change of model at a time
  QuantizeJobs& quantize_jobs;
  Mailbox<Outgoing>& outbox;
  std::chrono::steady_clock::time_point started_at;
  bool socket_stays = false;   // when this process ends: a service manager listens on
  std::function<void()> stop;  // begins the graceful end
};

// Answers `line` of session `session`, now or later. Never throws: what is wrong goes to the
// client.
void dispatch(Services& services, uint64_t session, const std::string& line);

}  // namespace tgi
