// How handlers let jobs work: what a job throws goes to the client, and so does that it never
// began. Only for the files that have handlers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/mailbox.h"
#include "daemon/dispatch.h"
#include "daemon/jobs.h"
#include "daemon/model_loader.h"
#include "daemon/session.h"

namespace tgi::daemon {

// Runs `work`; what it throws goes to the client.
template <typename Work>
void answering_errors(Mailbox<Outgoing>& outbox, uint64_t session, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    post(outbox, {session, error});
  } catch (const std::bad_alloc&) {
    post(outbox, {session, Error(Code::kOutOfMemory, "the daemon has no memory left for this")});
  } catch (const std::exception& error) {
    post(outbox, {session, Error(Code::kInternal, error.what())});
  }
}

// Runs `work` as a job; what it throws goes to the client, and so does that it will never begin.
template <typename Work>
void run_job(Jobs& jobs, Mailbox<Outgoing>& outbox, uint64_t session, Work work) {
  jobs.post([&outbox, session, work = std::move(work)] { answering_errors(outbox, session, work); },
            [&outbox, session] {
              post(outbox, {session, Error(Code::kOverloaded,
                                           "the daemon is stopping and takes no new work")});
            });
}

// The same, and sends what `work` returns.
template <typename Work>
void answer_by_job(Jobs& jobs, Mailbox<Outgoing>& outbox, uint64_t session, Work work) {
  run_job(jobs, outbox, session, [&outbox, session, work = std::move(work)] {
    post(outbox, {session, work()});
  });
}

// As requests say it; nothing: they do not.
inline ModelLoader::KeepAlive keep_alive_of(const std::optional<double>& seconds) {
  constexpr double kForEver = 1e9;
  if (!seconds) return std::nullopt;
  if (*seconds < 0 || *seconds > kForEver) return std::chrono::milliseconds(-1);
  return std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000));
}

// Runs `work` as a job with the model of that name, when it is there: a model that is loaded on
// demand is waited for, without a thread.
template <typename Work>
void run_with_model(Services& services,
                    Jobs& jobs,
                    const Caller& caller,
                    const ModelName& name,
                    ModelLoader::KeepAlive keep_alive,
                    Work work) {
  run_job(jobs, services.outbox, caller.session,
          [&outbox = services.outbox, &loader = services.loader, &jobs, session = caller.session,
           ended = caller.ended, name, keep_alive, work = std::move(work)] {
            if (ended.stop_requested()) return;
            std::optional<ModelLease> lease = loader.try_lease(name, keep_alive);
            if (lease) return work(*lease);
            // Before it waits: what the engine wants to hear of the client later comes after this.
            post(outbox, {session, Attached{.cancel = [&loader, session] { loader.leave(session); },
                                            .acknowledge = [](int32_t) {}}});
            lease = loader.lease_or_wait(
                name, keep_alive, session,
                [&outbox, &jobs, session, ended, work](ModelLease* given, const Error* error) {
                  if (error != nullptr) return post(outbox, {session, *error});
                  run_job(jobs, outbox, session,
                          [held = std::make_shared<ModelLease>(std::move(*given)), ended, work] {
                            if (!ended.stop_requested()) work(*held);
                            *held = {};  // not when the last copy of this goes
                          });
                });
            if (lease) work(*lease);
          });
}

// The same, and sends what `work` returns.
template <typename Work>
void answer_with_model(Services& services, const Caller& caller, const ModelName& name, Work work) {
  run_with_model(services, services.intake_jobs, caller, name, {},
                 [&outbox = services.outbox, session = caller.session,
                  work = std::move(work)](ModelLease& lease) {
                   post(outbox, {session, work(*lease.model)});
                 });
}

}  // namespace tgi::daemon
