#include "daemon/model_slot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <optional>
#include <thread>

#include "base/current_error.h"
#include "base/log.h"

namespace tgi::daemon {
namespace {

constexpr std::string_view kNotLoaded = "not loaded";

}  // namespace

void drain(Engine& engine, std::chrono::milliseconds timeout, const Error& error) {
  const auto deadline = Clock::now() + timeout;
  while (engine.num_live_requests() > 0 && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  engine.refuse_all(error);
}

std::shared_ptr<ServedModel> ModelSlot::current() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

std::vector<std::shared_ptr<ServedModel>> ModelSlot::all_models() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> out;
  if (model_ != nullptr) out.push_back(model_);
  for (const auto& [model, uses] : before_) out.push_back(model);
  return out;
}

bool ModelSlot::has_ended() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(before_, [](const auto& each) { return each.second->num() == 0; });
}

std::vector<std::shared_ptr<ServedModel>> ModelSlot::take_ended() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> out;
  for (auto& [model, uses] : before_) {
    if (uses->num() == 0) out.push_back(std::move(model));
  }
  std::erase_if(before_, [](const auto& each) { return each.first == nullptr; });
  return out;
}

std::shared_ptr<ServedModel> ModelSlot::require() const {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Error(Code::kOverloaded, "the daemon is stopping and takes no new work");
  if (phase_ == "ready") return model_;
  if (phase_ == "loading" || phase_ == "draining") {
    throw Error(Code::kOverloaded,
                fmt::format("no model is ready: {} {}; try again in a moment", phase_, detail_));
  }
  if (phase_ == kNotLoaded) {
    throw Error(Code::kNotFound, fmt::format("{} is not loaded; the next request that asks for it "
                                             "loads it",
                                             detail_));
  }
  if (phase_ == "failed") {
    throw Error(Code::kNotFound,
                fmt::format("no model is loaded, the last one failed: {}", detail_));
  }
  throw Error(Code::kNotFound, "no model is loaded; load one with: tgi load PATH");
}

std::optional<ModelLease> ModelSlot::try_lease(
    std::optional<std::chrono::milliseconds> keep_alive) {
  {
    const std::lock_guard lock(mutex_);
    if (keep_alive) terms_.keep_alive = *keep_alive;
    if (!stopping_) {
      if (phase_ == "ready" && !gives_way_) return ModelLease{model_, uses_->begin()};
      if (gives_way_ || enrolled_) return std::nullopt;
    }
  }
  (void)require();
  throw Error(Code::kOverloaded, "the model has just become ready; try again in a moment");
}

void ModelSlot::enroll(const ModelOptions& options, const ModelTerms& terms) {
  const std::lock_guard lock(mutex_);
  terms_ = terms;
  enrolled_ = options;
  if (model_ != nullptr || busy_) return;
  name_ = options.name;
  phase_ = kNotLoaded;
  detail_ = options.model;
}

std::optional<ModelOptions> ModelSlot::enrolled() const {
  const std::lock_guard lock(mutex_);
  return enrolled_;
}

void ModelSlot::set_terms(const ModelTerms& terms) {
  const std::lock_guard lock(mutex_);
  terms_ = terms;
}

void ModelSlot::begin_giving_way() {
  const std::lock_guard lock(mutex_);
  if (phase_ == "ready") gives_way_ = true;
}

bool ModelSlot::begin_to_expire(std::chrono::steady_clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto at = expiry();
  if (!at || *at > now) return false;
  gives_way_ = true;
  return true;
}

void ModelSlot::stay() {
  const std::lock_guard lock(mutex_);
  gives_way_ = false;
}

bool ModelSlot::is_unused() const {
  const std::lock_guard lock(mutex_);
  return uses_ == nullptr || uses_->num() == 0;
}

void ModelSlot::set_aside() {
  std::shared_ptr<ServedModel> model = current();
  if (model == nullptr) return stay();
  ModelOptions options = model->options();
  options.promised_bytes = 0;
  options.stop = {};
  const ipc::ModelStatus last = model->status();
  std::vector<ipc::AdapterStatus> adapters = model->adapters().list();
  for (ipc::AdapterStatus& each : adapters) each.state = "host";
  model.reset();  // the slot waits for the last who holds it
  begin(std::string(kNotLoaded), options.model);
  {
    // Before the model goes: whoever asks meanwhile finds one or the other.
    const std::lock_guard lock(mutex_);
    last_ = last;
  }
  drop_current();
  const std::lock_guard lock(mutex_);
  busy_ = false;
  gives_way_ = false;
  phase_ = kNotLoaded;
  detail_ = options.model;
  enrolled_ = std::move(options);
  adapters_ = std::move(adapters);
}

// Under the lock: whoever asks must not be the last who holds the model.
EngineProgress ModelSlot::progress() const {
  const std::lock_guard lock(mutex_);
  return model_ == nullptr ? EngineProgress{} : model_->engine().progress();
}

std::string ModelSlot::phase() const {
  const std::lock_guard lock(mutex_);
  return stopping_ ? "stopping" : gives_way_ ? "draining" : phase_;
}

std::string ModelSlot::phase_detail() const {
  const std::lock_guard lock(mutex_);
  return detail_;
}

void ModelSlot::set_phase_detail(const std::string& detail) {
  const std::lock_guard lock(mutex_);
  detail_ = detail;
}

ipc::AdapterList ModelSlot::adapters_aside() const {
  const std::lock_guard lock(mutex_);
  return {.adapters = adapters_};
}

SlotStanding ModelSlot::standing() const {
  const std::lock_guard lock(mutex_);
  SlotStanding out{.phase = stopping_    ? "stopping"
                            : gives_way_ ? "draining"
                                         : phase_,
                   .detail = detail_,
                   .path = path(),
                   .model = model_,
                   .last = last_,
                   .terms = terms_};
  if (uses_ == nullptr) return out;
  out.num_uses = uses_->num();
  for (const auto& [model, uses] : before_) out.num_uses_before += uses->num();
  out.last_used = uses_->last_used();
  out.expires_at = expiry();
  return out;
}

// What is there, or what comes next, as it was asked for: heads may stand for the model that they
// draft for. REQUIRES: the lock is held.
std::string ModelSlot::path() const {
  const bool comes_next = model_ == nullptr && enrolled_ && phase_ != "loading";
  return comes_next ? enrolled_->model : path_;
}

std::optional<std::chrono::steady_clock::time_point> ModelSlot::expires_at() const {
  const std::lock_guard lock(mutex_);
  return expiry();
}

// REQUIRES: the lock is held.
std::optional<std::chrono::steady_clock::time_point> ModelSlot::expiry() const {
  const bool may_expire = phase_ == "ready" && !gives_way_ && !terms_.is_pinned &&
                          terms_.keep_alive.count() >= 0 && uses_->num() == 0;
  if (!may_expire) return std::nullopt;
  return uses_->last_used() + terms_.keep_alive;
}

void ModelSlot::begin(const std::string& phase, const std::string& detail) {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Error(Code::kOverloaded, "the daemon is stopping and takes no new work");
  if (busy_) {
    throw Error(Code::kOverloaded,
                fmt::format("another change of model is under way: {} {}; try again later", phase_,
                            detail_));
  }
  busy_ = true;
  phase_ = model_ != nullptr ? "draining" : phase;
  detail_ = detail;
}

void ModelSlot::drop_current() {
  for (std::shared_ptr<ServedModel>& model : all_models()) {
    drain(model->engine(), drain_timeout_, Error(Code::kCancelled, "the model is being unloaded"));
  }
  {
    const std::lock_guard lock(mutex_);
    before_.clear();
  }
  std::shared_ptr<ServedModel> model = current();
  if (model == nullptr) return;
  drain(model->engine(), drain_timeout_, Error(Code::kCancelled, "the model is being unloaded"));
  {
    const std::lock_guard lock(mutex_);
    model_.reset();
  }
  // A handler may hold it for a moment longer; its memory must be free before the next one is
  // planned.
  const std::string path = model->options().model;
  const std::weak_ptr<ServedModel> watch = model;
  model.reset();
  while (!watch.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  log_info("model unloaded", {{"model", path}, {"name", name()}});
}

void ModelSlot::announce_load(const ModelOptions& options) {
  set_loading(options, options.model);
}

void ModelSlot::set_loading(const ModelOptions& options, const std::string& path) {
  const std::lock_guard lock(mutex_);
  name_ = options.name;
  phase_ = "loading";
  detail_ = options.model;
  path_ = path;
}

std::string ModelSlot::name() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

bool ModelSlot::is_called(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (name.empty()) return false;
  if (name_ == name || path() == name) return true;
  return model_ != nullptr && model_->options().model == name;
}

void ModelSlot::set_ready(std::unique_ptr<ServedModel> model) {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  model_ = std::move(model);
  uses_ = std::make_shared<UseCount>(on_unused_);
  last_.reset();
  adapters_.clear();
  gives_way_ = false;
  phase_ = "ready";
  detail_.clear();
}

// Each alone: one whose files are gone takes no other with it.
void ModelSlot::bring_adapters_back(ServedModel& model) const {
  std::vector<ipc::AdapterStatus> adapters;
  {
    const std::lock_guard lock(mutex_);
    if (!last_ || last_->name != model.options().model) return;
    adapters = adapters_;
  }
  for (const ipc::AdapterStatus& each : adapters) {
    try {
      (void)model.adapters().load(each.name, each.path);
      if (each.pinned) model.adapters().pin(each.name, true);
    } catch (const std::exception& error) {
      log_warn("an adapter did not come back with its model",
               {{"adapter", each.name}, {"error", error.what()}});
    }
  }
}

void ModelSlot::set_failed(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  phase_ = "failed";
  detail_ = reason;
}

// Null when nothing serves: then there is nothing to lose, and the load itself finds what is wrong.
std::unique_ptr<PreparedModel> ModelSlot::prepare_beside_current(
    const ModelOptions& options) const {
  const std::shared_ptr<ServedModel> serving = current();
  if (serving == nullptr) return nullptr;
  std::unique_ptr<PreparedModel> prepared = prepare_model(options);
  const std::array given_back = {given_back_by(*serving, *prepared, false)};
  check_fits(*prepared, given_back);
  return prepared;
}

Error ModelSlot::load_again(const ModelOptions& before,
                            const std::string& path,
                            const Error& failure) {
  const auto with = [&](const std::string& outcome) {
    return Error(failure.code(), fmt::format("{}; {}", failure.what(), outcome));
  };
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return failure;
  }
  log_warn("a load failed, the model before is loaded again",
           {{"error", failure.what()}, {"model", before.model}});
  set_loading(before, path);
  try {
    set_ready(ServedModel::load(before));
    return with(fmt::format("{}, which served before, was loaded again", before.model));
  } catch (const std::exception& error) {
    return with(
        fmt::format("{}, which served before, could not be loaded again ({}), so that there is no "
                    "model now; load one with: tgi load PATH",
                    before.model, error.what()));
  }
}

void ModelSlot::load(const ModelOptions& options, std::unique_ptr<PreparedModel> prepared) {
  ModelOptions stoppable = options;
  stoppable.stop = stop_.get_token();
  if (prepared == nullptr) {
    prepared = prepare_beside_current(stoppable);
  } else {
    prepared->options.stop = stoppable.stop;
    prepared->ranks.stop = stoppable.stop;
  }
  begin("loading", options.model);
  const std::string path = prepared == nullptr ? options.model : prepared->asked_model;
  const std::string path_before = standing().path;
  std::optional<ModelOptions> before;
  std::optional<Error> failure;
  try {
    if (const auto serving = current()) before = serving->options();
    drop_current();
    set_loading(options, path);
    if (prepared == nullptr) prepared = prepare_model(stoppable);
    std::unique_ptr<ServedModel> model = ServedModel::load(std::move(prepared));
    bring_adapters_back(*model);
    set_ready(std::move(model));
    return;
  } catch (const Error& error) {
    failure = error;
  } catch (const std::bad_alloc&) {
    failure.emplace(Code::kOutOfMemory, "the daemon has no memory left for this model");
  } catch (...) {
    failure = current_error();
  }
  if (before) failure = load_again(*before, path_before, *failure);
  if (phase() != "ready") set_failed(failure->what());
  throw Error(*failure);
}

void ModelSlot::load_beside(const ModelOptions& options, std::unique_ptr<PreparedModel> prepared) {
  prepared->options.stop = stop_.get_token();
  prepared->ranks.stop = stop_.get_token();
  std::unique_ptr<ServedModel> model = ServedModel::load(std::move(prepared));
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Error(Code::kOverloaded, "the daemon is stopping and takes no new work");
  if (model_ != nullptr) before_.emplace_back(std::move(model_), std::move(uses_));
  model_ = std::move(model);
  uses_ = std::make_shared<UseCount>(on_unused_);
  name_ = options.name;
  path_ = options.model;
  phase_ = "ready";
  detail_.clear();
}

void ModelSlot::unload() {
  begin("no model", "");
  drop_current();
  const std::lock_guard lock(mutex_);
  busy_ = false;
  gives_way_ = false;
  phase_ = "no model";
  detail_.clear();
  path_.clear();
  enrolled_.reset();
  last_.reset();
  adapters_.clear();
}

void ModelSlot::refuse_new_work() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.request_stop();
}

}  // namespace tgi::daemon
