#include "daemon/dispatch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "daemon/metrics.h"
#include "daemon/request_jobs.h"
#include "engine/gguf/model_files.h"
#include "engine/lora/write_merged.h"
#include "engine/runtime/inspect.h"
#include "engine/runtime/logit_check.h"
#include "ipc/detokenize.h"
#include "ipc/model_facts.h"
#include "ipc/quantize_job.h"
#include "ipc/vectors.h"

namespace tgi::daemon {
namespace {

using ipc::OrderedJson;

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

// What a request asks for is shared by the copies of its job (a std::function must be copyable);
// only one of them ever runs.
template <typename Params>
using Asked = std::shared_ptr<const Params>;

struct NoParams {};

NoParams no_params(const OrderedJson& params) {
  if (params.is_object() && params.empty()) return {};
  if (!params.is_object()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("params: expected an object, got {}", params.type_name()));
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: unknown field; this method takes none", params.begin().key()));
}

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

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size_pages = 0;
  int64_t resident_pages = 0;
  statm >> size_pages >> resident_pages;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

ipc::ModelStay stay_of(const SlotStanding& standing, int64_t num_waiting) {
  using Seconds = std::chrono::duration<double>;
  const auto now = std::chrono::steady_clock::now();
  ipc::ModelStay out{.pinned = standing.terms.is_pinned,
                     .keep_alive_seconds = Seconds(standing.terms.keep_alive).count(),
                     .num_uses = standing.num_uses,
                     .num_uses_before = standing.num_uses_before,
                     .num_waiting = num_waiting};
  if (out.keep_alive_seconds < 0) out.keep_alive_seconds = -1;
  if (standing.last_used) {
    out.idle_seconds = out.num_uses > 0 ? 0.0 : Seconds(now - *standing.last_used).count();
  }
  if (standing.expires_at) {
    out.expires_in_seconds = std::max(0.0, Seconds(*standing.expires_at - now).count());
  }
  return out;
}

void handle_status(Services& services, const Caller& caller, const Asked<NoParams>& /*asked*/) {
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
  status.max_models = services.options.max_models;
  const ModelSlot& default_slot = services.models.default_slot();
  const SlotStanding of_default = default_slot.standing();
  status.stay = stay_of(of_default, services.loader.num_waiting(default_slot));
  if (!status.model) status.last_model = of_default.last;
  for (const auto& [name, slot] : services.models.beside()) {
    const SlotStanding standing = slot->standing();
    ipc::OtherModelStatus& other = status.others.emplace_back();
    other.name = name;
    other.phase = standing.phase;
    other.phase_detail = standing.detail;
    other.stay = stay_of(standing, services.loader.num_waiting(*slot));
    if (standing.model != nullptr) {
      other.model = standing.model->status();
      other.counters = standing.model->engine().stats().counters;
    } else {
      other.last_model = standing.last;
    }
  }
  post(services.outbox, {caller.session, ipc::to_json(status)});
}

void handle_load(Services& services, const Caller& caller, const Asked<ipc::LoadParams>& asked) {
  const ModelOptions options = model_options(services.options, *asked);
  const ModelTerms terms = model_terms(services.options, *asked);
  Mailbox<Outgoing>& outbox = services.outbox;
  if (asked->on_demand) {
    services.models.enroll(options, terms);
    return post(outbox, {caller.session, OrderedJson{{"model", options.model}}});
  }
  services.loader.load(options, terms,
                       [&outbox, session = caller.session, path = options.model](
                           const std::shared_ptr<ServedModel>& model, const Error* error) {
                         if (error != nullptr) return post(outbox, {session, *error});
                         OrderedJson result = {{"model", path}};
                         if (model != nullptr)
                           result["load_seconds"] = model->status().load_seconds;
                         post(outbox, {session, std::move(result)});
                       });
}

void handle_keep(Services& services, const Caller& caller, const Asked<ipc::KeepParams>& asked) {
  if (asked->pinned) {
    services.access.require(Access::kManage, "keep with pinned", caller.client);
    const std::shared_ptr<ModelSlot> slot = services.models.find_or_throw(asked->model);
    ModelTerms terms = slot->standing().terms;
    terms.is_pinned = *asked->pinned;
    slot->set_terms(terms);
  }
  const ModelLoader::KeepAlive keep_alive = keep_alive_of(asked->keep_alive_seconds);
  // What is to go is not loaded for that.
  const bool lets_go = keep_alive && keep_alive->count() == 0;
  if (lets_go && services.models.find_or_throw(asked->model)->current() == nullptr) {
    return post(services.outbox, {caller.session, OrderedJson::object()});
  }
  run_with_model(services, services.intake_jobs, caller, asked->model, keep_alive,
                 [&outbox = services.outbox, session = caller.session](ModelLease& lease) {
                   lease.use = {};
                   post(outbox, {session, OrderedJson::object()});
                 });
}

void handle_unload(Services& services,
                   const Caller& caller,
                   const Asked<ipc::UnloadParams>& asked) {
  ModelLoader& loader = services.loader;
  answer_by_job(services.load_jobs, services.outbox, caller.session, [&loader, asked] {
    loader.unload(asked->model, asked->keep_name);
    return OrderedJson::object();
  });
}

void handle_stop(Services& services, const Caller& caller, const Asked<NoParams>& /*asked*/) {
  post(services.outbox,
       {caller.session, OrderedJson{{"pid", ::getpid()}, {"socket_stays", services.socket_stays}}});
  services.stop();
}

void handle_load_adapter(Services& services,
                         const Caller& caller,
                         const Asked<ipc::LoadAdapterParams>& asked) {
  answer_with_model(services, caller, asked->model, [asked](ServedModel& model) {
    (void)model.adapters().load(asked->name, asked->path);
    if (asked->pinned) model.adapters().pin(asked->name, *asked->pinned);
    for (const ipc::AdapterStatus& each : model.adapters().list()) {
      if (each.name == asked->name) return ipc::to_json(each);
    }
    throw Error(Code::kAdapter, fmt::format("adapter {}: it was unloaded meanwhile", asked->name));
  });
}

void handle_unload_adapter(Services& services,
                           const Caller& caller,
                           const Asked<ipc::UnloadAdapterParams>& asked) {
  // No thread waits for the requests that have it.
  run_with_model(services, services.intake_jobs, caller, asked->model, {},
                 [&outbox = services.outbox, session = caller.session, asked](ModelLease& lease) {
                   lease.model->adapters().unload(asked->name, [&outbox, session] {
                     post(outbox, {session, OrderedJson::object()});
                   });
                 });
}

void handle_adapters(Services& services,
                     const Caller& caller,
                     const Asked<ipc::ModelParams>& asked) {
  // A model that is not loaded has none on a device, and is not loaded to say so.
  const std::shared_ptr<ModelSlot> slot = services.models.find_or_throw(asked->model);
  if (slot->phase() == "not loaded") {
    return post(services.outbox, {caller.session, ipc::to_json(slot->adapters_aside())});
  }
  answer_with_model(services, caller, asked->model,
                    [](ServedModel& model) { return ipc::to_json(model.list_adapters()); });
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

// Among the requests: it reads a few files and takes no memory to speak of.
void handle_inspect(Services& services,
                    const Caller& caller,
                    const Asked<ipc::InspectParams>& asked) {
  ModelOptions options = services.options.model;
  options.model = asked->model;
  answer_by_job(services.intake_jobs, services.outbox, caller.session, [options] {
    return holds_adapter(options.model) ? ipc::to_json(inspect_adapter(options.model))
                                        : ipc::to_json(inspect_model(options));
  });
}

void handle_merge(Services& services, const Caller& caller, const Asked<ipc::MergeParams>& asked) {
  answer_by_job(services.merge_jobs, services.outbox, caller.session,
                [ended = caller.ended, asked] {
                  const auto base = open_model_files(asked->model);
                  const auto adapter = open_folder(asked->adapter);
                  const auto num_threads =
                      static_cast<int>(std::max(1U, std::thread::hardware_concurrency() / 2));
                  const int64_t bytes =
                      write_merged_model(*base, *adapter, asked->output, num_threads, ended);
                  return ipc::OrderedJson{{"bytes", bytes}};
                });
}

void handle_metrics(Services& services, const Caller& caller, const Asked<NoParams>& /*asked*/) {
  post(services.outbox, {caller.session, ipc::to_json(collect_metrics(services.models))});
}

void handle_quantize(Services& services,
                     const Caller& caller,
                     const Asked<ipc::QuantizeParams>& asked) {
  services.quantize_jobs.start(caller.session, *asked);
}

// On the thread of the loads: the second copy of the model must not meet another one's plan. The
// model is taken there, not before: who waits for this thread must not hold what is to give way.
void handle_check(Services& services, const Caller& caller, const Asked<ipc::ModelParams>& asked) {
  ModelHost& models = services.models;
  answer_by_job(services.load_jobs, services.outbox, caller.session, [&models, asked] {
    const LogitCheck check = check_logits(*models.require(asked->model));
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
  Access access;
  // Any thread: reads the parameters, and gives what is to be done on the I/O thread.
  std::function<void(Services&, const Caller&)> (*decode)(const OrderedJson& params);
};

template <auto kDecode, auto kHandle>
constexpr MethodRow method(std::string_view name, Access access) {
  using Params = decltype(kDecode(std::declval<const OrderedJson&>()));
  return {
      .name = name, .access = access, .decode = [](const OrderedJson& params) {
        return std::function<void(Services&, const Caller&)>(
            [asked = std::make_shared<const Params>(kDecode(params))](
                Services& services, const Caller& caller) { kHandle(services, caller, asked); });
      }};
}

constexpr std::array<MethodRow, 18> kMethods = {{
    method<ipc::generate_request_from_json, handle_generate>(ipc::kGenerate, Access::kUse),
    method<ipc::vector_params_from_json, handle_embed>(ipc::kEmbed, Access::kUse),
    method<ipc::vector_params_from_json, handle_classify>(ipc::kClassify, Access::kUse),
    method<no_params, handle_status>(ipc::kStatus, Access::kUse),
    method<ipc::load_params_from_json, handle_load>(ipc::kLoad, Access::kManage),
    method<ipc::keep_params_from_json, handle_keep>(ipc::kKeep, Access::kUse),
    method<ipc::unload_params_from_json, handle_unload>(ipc::kUnload, Access::kManage),
    method<no_params, handle_stop>(ipc::kStop, Access::kManage),
    method<ipc::tokenize_params_from_json, handle_tokenize>(ipc::kTokenize, Access::kUse),
    method<ipc::detokenize_params_from_json, handle_detokenize>(ipc::kDetokenize, Access::kUse),
    method<ipc::load_adapter_params_from_json, handle_load_adapter>(ipc::kLoadAdapter,
                                                                    Access::kManage),
    method<ipc::unload_adapter_params_from_json, handle_unload_adapter>(ipc::kUnloadAdapter,
                                                                        Access::kManage),
    method<ipc::model_params_from_json, handle_adapters>(ipc::kAdapters, Access::kUse),
    method<no_params, handle_metrics>(ipc::kMetrics, Access::kUse),
    // Reads any folder that the daemon's user may read.
    method<ipc::inspect_params_from_json, handle_inspect>(ipc::kInspect, Access::kManage),
    method<ipc::merge_params_from_json, handle_merge>(ipc::kMerge, Access::kManage),
    method<ipc::quantize_params_from_json, handle_quantize>(ipc::kQuantize, Access::kManage),
    // Takes memory for a second model.
    method<ipc::model_params_from_json, handle_check>(ipc::kCheck, Access::kManage),
}};

const MethodRow& find_method(const std::string& name) {
  std::string known;
  for (const MethodRow& row : kMethods) {
    if (row.name == name) return row;
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  throw Error(Code::kNotFound,
              fmt::format("method \"{}\" is not known; there are: {}", name, known));
}

// Any thread. What the client may not ask for is refused before it is looked at.
std::function<void()> decode(Services& services, const Caller& caller, const std::string& line) {
  const ipc::Request request = ipc::decode_request(line);
  const MethodRow& row = find_method(request.method);
  services.access.require(row.access, row.name, caller.client);
  return [&services, caller, act = row.decode(request.params)] {
    answering_errors(services.outbox, caller.session, [&] { act(services, caller); });
  };
}

}  // namespace

ModelOptions model_options(const Options& settings, const ipc::LoadParams& asked) {
  ModelOptions options = settings.model;
  options.model = asked.model;
  options.name = asked.name.value_or("");
  asked.settings.apply_to(options);
  return options;
}

ModelTerms model_terms(const Options& settings, const ipc::LoadParams& asked) {
  return {.is_pinned = asked.pinned,
          .keep_alive = keep_alive_of(asked.keep_alive_seconds).value_or(settings.keep_alive)};
}

void dispatch(Services& services, const Caller& caller, std::string line) {
  if (line.size() <= kMaxInlineBytes) {
    answering_errors(services.outbox, caller.session, [&] { decode(services, caller, line)(); });
    return;
  }
  run_job(services.intake_jobs, services.outbox, caller.session,
          [&services, caller, line = std::make_shared<const std::string>(std::move(line))] {
            if (caller.ended.stop_requested()) return;
            Decoded decoded{decode(services, caller, *line)};
            if (caller.ended.stop_requested()) return;
            post(services.outbox, {caller.session, std::move(decoded)});
          });
}

}  // namespace tgi::daemon
