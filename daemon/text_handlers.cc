// What is asked of the model that serves: text, vectors, tokens.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/handlers.h"
#include "daemon/request_jobs.h"

namespace tgi::daemon {
namespace {

// Events of one request on their way to its session.
class SessionSink final : public ResponseSink {
 public:
  SessionSink(Mailbox<Outgoing>& outbox, uint64_t session, ModelUse use)
      : outbox_(outbox), session_(session), use_(std::move(use)) {}

  void on_accepted(const ipc::AcceptedEvent& event) override { post(outbox_, {session_, event}); }
  void on_token(ipc::TokenEvent&& event) override { post(outbox_, {session_, std::move(event)}); }
  void on_done(ipc::DoneEvent&& event) override { post(outbox_, {session_, std::move(event)}); }
  void on_error(const Error& error) override { post(outbox_, {session_, error}); }

 private:
  Mailbox<Outgoing>& outbox_;
  const uint64_t session_;
  const ModelUse use_;  // until the last event
};

// One answer for all texts of a request, made by a job: the engine's thread has more to do.
template <typename MakeAnswer>
void answer_texts(Services& services,
                  const Caller& caller,
                  std::string_view method,
                  const Asked<ipc::VectorParams>& asked,
                  MakeAnswer make) {
  // It reads any folder that the daemon's user may read.
  if (asked->adapter_path) {
    services.access.require(Access::kManage, fmt::format("{} with adapter_path", method),
                            caller.client);
  }
  Mailbox<Outgoing>& outbox = services.outbox;
  Jobs& jobs = services.intake_jobs;
  run_with_model(
      services, jobs, caller, asked->model, keep_alive_of(asked->keep_alive_seconds),
      [&outbox, &jobs, method, make, asked, session = caller.session](ModelLease& lease) {
        const std::shared_ptr<ServedModel> model = lease.model;
        const auto use = std::make_shared<const ModelUse>(std::move(lease.use));
        std::vector<std::unique_ptr<Request>> requests = model->prepare_texts(method, *asked);
        std::vector<uint64_t> ids;
        for (const auto& request : requests) ids.push_back(request->id);
        const auto cancel = [weak = std::weak_ptr(model), ids] {
          const auto held = weak.lock();
          if (held == nullptr) return;
          for (const uint64_t id : ids) held->engine().cancel(id);
        };
        const auto texts = std::make_shared<PooledTexts>(
            requests.size(),
            // Not the model itself: the engine, which calls this, would keep itself alive.
            [&outbox, &jobs, make, asked, weak = std::weak_ptr(model), use, session, cancel](
                std::vector<PooledText>&& pooled, const Error* error) {
              if (error != nullptr) {
                post(outbox, {session, *error});
                cancel();  // the others are of no use
                return;
              }
              answer_by_job(
                  jobs, outbox, session,
                  [make, asked, weak, use,
                   all = std::make_shared<const std::vector<PooledText>>(std::move(pooled))] {
                    const std::shared_ptr<ServedModel> held = weak.lock();
                    if (held == nullptr) {
                      throw Error(Code::kCancelled, "the model was unloaded meanwhile");
                    }
                    return make(*held->vectors(), *asked, *all);
                  });
            });
        try {
          for (size_t i = 0; i < requests.size(); ++i) {
            model->engine().submit(std::move(requests[i]), texts->sink(i));
          }
        } catch (...) {
          cancel();
          throw;
        }
        post(outbox, {session, Attached{.cancel = cancel, .acknowledge = [](int32_t) {}}});
      });
}

}  // namespace

void handle_generate(Services& services,
                     const Caller& caller,
                     const Asked<ipc::GenerateRequest>& asked) {
  Mailbox<Outgoing>& outbox = services.outbox;
  // It reads any folder that the daemon's user may read.
  if (asked->adapter_path) {
    services.access.require(Access::kManage, "generate with adapter_path", caller.client);
  }
  if (asked->merged_adapters && !asked->merged_adapters->paths.empty()) {
    services.access.require(Access::kManage, "generate with merged_adapters.paths", caller.client);
  }
  run_with_model(
      services, asked->merged_adapters ? services.merge_jobs : services.intake_jobs, caller,
      asked->model, keep_alive_of(asked->keep_alive_seconds),
      [&outbox, session = caller.session, ended = caller.ended, asked](ModelLease& lease) {
        const std::shared_ptr<ServedModel> model = lease.model;
        std::unique_ptr<Request> request = model->prepare(*asked, ended);
        const uint64_t request_id = request->id;
        model->engine().submit(std::move(request), std::make_unique<SessionSink>(
                                                       outbox, session, std::move(lease.use)));
        const auto tell = [weak = std::weak_ptr(model)](const auto& say) {
          if (const auto held = weak.lock()) say(held->engine());
        };
        // After the submit: should the session be gone by now, the cancel that follows must
        // find the request.
        post(outbox,
             {session,
              Attached{.cancel = [=] { tell([&](Engine& engine) { engine.cancel(request_id); }); },
                       .acknowledge =
                           [=](int32_t num_events) {
                             tell([&](Engine& engine) {
                               engine.acknowledge(request_id, num_events);
                             });
                           }}});
      });
}

void handle_embed(Services& services, const Caller& caller, const Asked<ipc::VectorParams>& asked) {
  answer_texts(
      services, caller, ipc::kEmbed, asked,
      [](const VectorIntake& vectors, const ipc::VectorParams& params,
         std::span<const PooledText> texts) { return ipc::to_json(vectors.embed(params, texts)); });
}

void handle_classify(Services& services,
                     const Caller& caller,
                     const Asked<ipc::VectorParams>& asked) {
  answer_texts(services, caller, ipc::kClassify, asked,
               [](const VectorIntake& vectors, const ipc::VectorParams& params,
                  std::span<const PooledText> texts) {
                 return ipc::to_json(vectors.classify(params, texts));
               });
}

void handle_tokenize(Services& services,
                     const Caller& caller,
                     const Asked<ipc::TokenizeParams>& asked) {
  answer_with_model(services, caller, asked->model,
                    [asked](ServedModel& model) { return ipc::to_json(model.tokenize(*asked)); });
}

void handle_detokenize(Services& services,
                       const Caller& caller,
                       const Asked<ipc::DetokenizeParams>& asked) {
  answer_with_model(services, caller, asked->model, [asked](ServedModel& model) {
    return ipc::to_json(ipc::DetokenizeResult{.text = model.intake().detokenize(asked->ids)});
  });
}

}  // namespace tgi::daemon
