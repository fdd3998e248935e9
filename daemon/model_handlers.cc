// Models and adapters: what is loaded, what is to be, and what they say of themselves.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "daemon/handlers.h"
#include "daemon/metrics.h"
#include "daemon/request_jobs.h"
#include "engine/gguf/model_files.h"
#include "engine/lora/adapter_source.h"
#include "engine/lora/write_merged.h"
#include "engine/runtime/inspect.h"
#include "engine/runtime/logit_check.h"
#include "ipc/placed_model.h"

namespace tgi::daemon {

using ipc::OrderedJson;

namespace {

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

void handle_status(Services& services, const Caller& caller, const Asked<NoParams>& /*asked*/) {
  ipc::Status status;
  status.pid = ::getpid();
  status.uptime_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - services.started_at).count();
  status.phase = services.models.phase();
  status.phase_detail = services.models.phase_detail();
  status.socket = services.options.socket;
  status.rss_bytes = resident_bytes();
  status.max_models = services.options.max_models;
  const ModelSlot& default_slot = services.models.default_slot();
  const SlotStanding of_default = default_slot.standing();
  status.path = of_default.path;
  status.stay = stay_of(of_default, services.loader.num_waiting(default_slot));
  // Both of one moment: asked for one after the other, a change between could hide both.
  if (of_default.model != nullptr) {
    status.model = of_default.model->status();
    status.counters = of_default.model->engine().stats().counters;
  } else {
    status.last_model = of_default.last;
  }
  for (const auto& [name, slot] : services.models.beside()) {
    const SlotStanding standing = slot->standing();
    ipc::OtherModelStatus& other = status.others.emplace_back();
    other.name = name;
    other.phase = standing.phase;
    other.phase_detail = standing.detail;
    other.path = standing.path;
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
  if (asked->next_name) {
    const ModelHost::Enrolled done =
        services.models.enroll_beside(options, terms, asked->names_default);
    const ipc::PlacedModel placed{.model = options.model, .name = done.name, .is_new = done.is_new};
    return post(outbox, {caller.session, ipc::to_json(placed)});
  }
  if (asked->on_demand) {
    services.models.enroll(options, terms, asked->names_default);
    return post(outbox, {caller.session, OrderedJson{{"model", options.model}}});
  }
  services.loader.load(
      options, terms,
      [&outbox, session = caller.session, path = options.model](
          const std::shared_ptr<ServedModel>& model, const Error* error) {
        if (error != nullptr) return post(outbox, {session, *error});
        OrderedJson result = {{"model", path}};
        if (model != nullptr) result["load_seconds"] = model->status().load_seconds;
        post(outbox, {session, std::move(result)});
      },
      asked->names_default);
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
                  const auto adapter = open_adapter_source(asked->adapter);
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

}  // namespace tgi::daemon
