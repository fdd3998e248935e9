#include "daemon/model_slot.h"

#include <fmt/format.h>

#include <chrono>
#include <new>
#include <optional>
#include <thread>

#include "base/log.h"

namespace tgi::daemon {

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

std::shared_ptr<ServedModel> ModelSlot::require() const {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Error(Code::kOverloaded, "the daemon is stopping and takes no new work");
  if (phase_ == "ready") return model_;
  if (phase_ == "loading" || phase_ == "draining") {
    throw Error(Code::kOverloaded,
                fmt::format("no model is ready: {} {}; try again in a moment", phase_, detail_));
  }
  if (phase_ == "failed") {
    throw Error(Code::kNotFound,
                fmt::format("no model is loaded, the last one failed: {}", detail_));
  }
  throw Error(Code::kNotFound, "no model is loaded; load one with: tgi load PATH");
}

// Under the lock: whoever asks must not be the last who holds the model.
EngineProgress ModelSlot::progress() const {
  const std::lock_guard lock(mutex_);
  return model_ == nullptr ? EngineProgress{} : model_->engine().progress();
}

std::string ModelSlot::phase() const {
  const std::lock_guard lock(mutex_);
  return stopping_ ? "stopping" : phase_;
}

std::string ModelSlot::phase_detail() const {
  const std::lock_guard lock(mutex_);
  return detail_;
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
  set_loading(options);
}

void ModelSlot::set_loading(const ModelOptions& options) {
  const std::lock_guard lock(mutex_);
  name_ = options.name;
  phase_ = "loading";
  detail_ = options.model;
}

std::string ModelSlot::name() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

bool ModelSlot::is_called(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return (!name_.empty() && name_ == name) ||
         (model_ != nullptr && model_->options().model == name);
}

void ModelSlot::set_ready(std::unique_ptr<ServedModel> model) {
  const std::lock_guard lock(mutex_);
  busy_ = false;
  model_ = std::move(model);
  phase_ = "ready";
  detail_.clear();
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
  check_fits(*prepared, *serving);
  return prepared;
}

Error ModelSlot::load_again(const ModelOptions& before, const Error& failure) {
  const auto with = [&](const std::string& outcome) {
    return Error(failure.code(), fmt::format("{}; {}", failure.what(), outcome));
  };
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return failure;
  }
  log_warn("a load failed, the model before is loaded again",
           {{"error", failure.what()}, {"model", before.model}});
  set_loading(before);
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

void ModelSlot::load(const ModelOptions& options) {
  ModelOptions stoppable = options;
  stoppable.stop = stop_.get_token();
  std::unique_ptr<PreparedModel> prepared = prepare_beside_current(stoppable);
  begin("loading", options.model);
  std::optional<ModelOptions> before;
  std::optional<Error> failure;
  try {
    if (const auto serving = current()) before = serving->options();
    drop_current();
    set_loading(options);
    if (prepared == nullptr) prepared = prepare_model(stoppable);
    set_ready(ServedModel::load(std::move(prepared)));
    return;
  } catch (const Error& error) {
    failure = error;
  } catch (const std::bad_alloc&) {
    failure.emplace(Code::kOutOfMemory, "the daemon has no memory left for this model");
  } catch (const std::exception& error) {
    failure.emplace(Code::kInternal, error.what());
  }
  if (before) failure = load_again(*before, *failure);
  if (phase() != "ready") set_failed(failure->what());
  throw Error(*failure);
}

void ModelSlot::unload() {
  begin("no model", "");
  drop_current();
  const std::lock_guard lock(mutex_);
  busy_ = false;
  phase_ = "no model";
  detail_.clear();
}

void ModelSlot::refuse_new_work() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.request_stop();
}

}  // namespace tgi::daemon
