// Method name to handler, and who may ask for it: one row each. Handlers run on the I/O thread and
// must not block; what takes time goes to a job, whose answer comes back through the outbox. So
// does reading a request that is large: decoding is done on any thread, and what it asks for on the
// I/O thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/mailbox.h"
#include "daemon/access.h"
#include "daemon/jobs.h"
#include "daemon/model_host.h"
#include "daemon/model_loader.h"
#include "daemon/options.h"
#include "daemon/quantize_jobs.h"
#include "daemon/session.h"
#include "ipc/protocol.h"

namespace tgi::daemon {

// What handlers work with. All of it outlives every session.
struct Services {
  const Options& options;
  const AccessRules& access;
  ModelHost& models;
  ModelLoader& loader;
  Jobs& intake_jobs;
  Jobs& merge_jobs;  // one thread: intake of requests for merged adapters, which may take minutes
  Jobs& load_jobs;   // one thread: one change of model at a time
  QuantizeJobs& quantize_jobs;
  Mailbox<Outgoing>& outbox;
  std::chrono::steady_clock::time_point started_at;
  bool socket_stays = false;   // when this process ends: a service manager listens on
  std::function<void()> stop;  // begins the graceful end
};

// Who asks.
struct Caller {
  uint64_t session = 0;
  ipc::Credentials client{};
  std::stop_token ended{};  // of the session
};

// A longer request is decoded by one of the intake jobs: 64 MiB of JSON take seconds.
inline constexpr size_t kMaxInlineBytes = size_t{64} << 10;

// What was asked for, and as the daemon was started what was not.
ModelOptions model_options(const Options& settings, const ipc::LoadParams& asked);
ModelTerms model_terms(const Options& settings, const ipc::LoadParams& asked);

// Answers `line`, now or later. Never throws: what is wrong goes to the client.
void dispatch(Services& services, const Caller& caller, std::string line);

}  // namespace tgi::daemon
