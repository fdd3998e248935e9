#include "daemon/dispatch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "daemon/metrics.h"
#include "engine/runtime/inspect.h"
#include "engine/runtime/logit_check.h"
#include "ipc/model_facts.h"
#include "ipc/quantize_job.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

// Events of one request on their way to its session.
class SessionSink final : public ResponseSink {
 public:
  SessionSink(Mailbox<Outgoing>& outbox, uint64_t session) : outbox_(outbox), session_(session) {}

  void on_accepted(const ipc::AcceptedEvent& event) override { post(outbox_, {session_, event}); }
  void on_token(ipc::TokenEvent&& event) override { post(outbox_, {session_, std::move(event)}); }
  void on_done(ipc::DoneEvent&& event) override { post(outbox_, {session_, std::move(event)}); }
  void on_error(const Error& error) override { post(outbox_, {session_, error}); }

 private:
  Mailbox<Outgoing>& outbox_;
  const uint64_t session_;
};

// Runs `work` as a job and sends what it returns, or the error it throws.
template <typename Work>
void answer_by_job(Jobs& jobs, Mailbox<Outgoing>& outbox, uint64_t session, Work work) {
  jobs.post([&outbox, session, work = std::move(work)] {
    try {
      post(outbox, {session, work()});
    } catch (const Error& error) {
      post(outbox, {session, error});
    } catch (const std::bad_alloc&) {
      post(outbox, {session, Error(Code::kOutOfMemory, "the daemon has no memory left for this")});
    } catch (const std::exception& error) {
      post(outbox, {session, Error(Code::kInternal, error.what())});
    }
  });
}

void handle_generate(Services& services, uint64_t session, const OrderedJson& params) {
  // Shared because a std::function must be copyable; only one copy ever runs.
  auto asked = std::make_shared<ipc::GenerateRequest>(ipc::generate_request_from_json(params));
  Mailbox<Outgoing>& outbox = services.outbox;
  ModelHost& models = services.models;
  services.intake_jobs.post([&outbox, &models, session, asked] {
    try {
      const std::shared_ptr<ServedModel> model = models.require();
      std::unique_ptr<Request> request = model->intake().prepare(*asked);
      const uint64_t request_id = request->id;
      model->engine().submit(std::move(request), std::make_unique<SessionSink>(outbox, session));
      // After the submit: should the session be gone by now, the cancel that follows must find the
      // request.
      post(outbox, {session, Attached{model, request_id}});
    } catch (const Error& error) {
      post(outbox, {session, error});
    } catch (const std::bad_alloc&) {
      post(outbox,
           {session, Error(Code::kOutOfMemory, "the daemon has no memory left for this request")});
    } catch (const std::exception& error) {
      post(outbox, {session, Error(Code::kInternal, error.what())});
    }
  });
}

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size_pages = 0;
  int64_t resident_pages = 0;
  statm >> size_pages >> resident_pages;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

void handle_status(Services& services, uint64_t session, const OrderedJson& /*params*/) {
  ipc::Status status;
  status.pid = ::getpid();
  status.uptime_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - services.started_at).count();
  status.phase = services.models.phase();
  status.phase_detail = services.models.phase_detail();
  status.socket = services.options.socket;
  status.rss_bytes = resident_bytes();
  if (const auto model = services.models.current()) {
    status.model = model->status();
    status.counters = model->engine().stats().counters;
  }
  post(services.outbox, {session, ipc::to_json(status)});
}

void handle_load(Services& services, uint64_t session, const OrderedJson& params) {
  const ipc::LoadParams asked = ipc::load_params_from_json(params);
  ModelOptions options = services.options.model;
  options.model = asked.model;
  options.load_format = asked.load_format.value_or("auto");
  if (asked.tokenizer_config) options.tokenizer_config = *asked.tokenizer_config;
  if (asked.dtype) options.dtype = *asked.dtype;
  if (asked.quantize) options.quantize = *asked.quantize;
  if (asked.quantize_group_size) {
    options.quantize_group_size = static_cast<int32_t>(*asked.quantize_group_size);
  }
  if (asked.kv_cache_dtype) options.kv_cache_dtype = *asked.kv_cache_dtype;
  if (asked.kv_cache_memory) options.kv_cache_bytes = *asked.kv_cache_memory;
  const auto take = [](const std::optional<int64_t>& given, auto& setting) {
    if (given) setting = static_cast<int32_t>(*given);
  };
  take(asked.max_total_tokens, options.max_total_tokens);
  take(asked.max_running, options.max_running);
  take(asked.max_batch_tokens, options.max_batch_tokens);
  take(asked.num_shard, options.num_shard);
  if (asked.backend) options.backend = *asked.backend;
  if (asked.deterministic) options.deterministic = *asked.deterministic;
  if (asked.cuda_memory_fraction) options.cuda_memory_fraction = *asked.cuda_memory_fraction;
  ModelHost& models = services.models;
  answer_by_job(services.load_jobs, services.outbox, session, [&models, options] {
    models.load(options);
    const auto model = models.current();
    return model ? OrderedJson{{"model", options.model},
                               {"load_seconds", model->status().load_seconds}}
                 : OrderedJson{{"model", options.model}};
  });
}

void handle_unload(Services& services, uint64_t session, const OrderedJson& /*params*/) {
  ModelHost& models = services.models;
  answer_by_job(services.load_jobs, services.outbox, session, [&models] {
    models.unload();
    return OrderedJson::object();
  });
}

void handle_stop(Services& services, uint64_t session, const OrderedJson& /*params*/) {
  post(services.outbox,
       {session, OrderedJson{{"pid", ::getpid()}, {"socket_stays", services.socket_stays}}});
  services.stop();
}

void handle_tokenize(Services& services, uint64_t session, const OrderedJson& params) {
  auto asked = std::make_shared<ipc::TokenizeParams>(ipc::tokenize_params_from_json(params));
  ModelHost& models = services.models;
  answer_by_job(services.intake_jobs, services.outbox, session, [&models, asked] {
    return ipc::to_json(models.require()->intake().tokenize(*asked));
  });
}

// Among the requests: it reads a few files and takes no memory to speak of.
void handle_inspect(Services& services, uint64_t session, const OrderedJson& params) {
  ModelOptions options = services.options.model;
  options.model = ipc::inspect_params_from_json(params).model;
  answer_by_job(services.intake_jobs, services.outbox, session,
                [options] { return ipc::to_json(inspect_model(options)); });
}

void handle_metrics(Services& services, uint64_t session, const OrderedJson& /*params*/) {
  post(services.outbox, {session, ipc::to_json(collect_metrics(services.models.current().get()))});
}

void handle_quantize(Services& services, uint64_t session, const OrderedJson& params) {
  services.quantize_jobs.start(session, ipc::quantize_params_from_json(params));
}

// On the thread of the loads: the second copy of the model must not meet another one's plan.
void handle_check(Services& services, uint64_t session, const OrderedJson& /*params*/) {
  ModelHost& models = services.models;
  answer_by_job(services.load_jobs, services.outbox, session, [&models] {
    const LogitCheck check = check_logits(*models.require());
    return OrderedJson{{"num_positions", check.num_positions},
                       {"mean_kl", check.mean_kl},
                       {"max_kl", check.max_kl},
                       {"greedy_agreement", check.greedy_agreement},
                       {"num_tokens_compared", check.num_tokens_compared},
                       {"reference_bytes", check.reference_bytes}};
  });
}

struct MethodRow {
  std::string_view name;
  void (*handle)(Services& services, uint64_t session, const OrderedJson& params);
};

constexpr std::array<MethodRow, 10> kMethods = {{
    {ipc::kGenerate, handle_generate},
    {ipc::kStatus, handle_status},
    {ipc::kLoad, handle_load},
    {ipc::kUnload, handle_unload},
    {ipc::kStop, handle_stop},
    {ipc::kTokenize, handle_tokenize},
    {ipc::kMetrics, handle_metrics},
    {ipc::kInspect, handle_inspect},
    {ipc::kQuantize, handle_quantize},
    {ipc::kCheck, handle_check},
}};

}  // namespace

void dispatch(Services& services, uint64_t session, const std::string& line) {
  try {
    const ipc::Request request = ipc::decode_request(line);
    std::string known;
    for (const MethodRow& row : kMethods) {
      if (row.name == request.method) return row.handle(services, session, request.params);
      known += known.empty() ? "" : ", ";
      known += row.name;
    }
    throw Error(Code::kNotFound,
                fmt::format("method \"{}\" is not known; there are: {}", request.method, known));
  } catch (const Error& error) {
    post(services.outbox, {session, error});
  } catch (const std::exception& error) {
    post(services.outbox, {session, Error(Code::kInternal, error.what())});
  }
}

}  // namespace tgi
