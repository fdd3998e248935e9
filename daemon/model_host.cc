#include "daemon/model_host.h"

#include <fmt/format.h>

#include <chrono>
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

std::shared_ptr<ServedModel> ModelHost::current() const {
  const std::lock_guard lock(mutex_);
  return model_;
}

std::shared_ptr<ServedModel> ModelHost::require() const {
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
EngineProgress ModelHost::progress() const {
  const std::lock_guard lock(mutex_);
  return model_ == nullptr ? EngineProgress{} : model_->engine().progress();
}

std::string ModelHost::phase() const {
  const std::lock_guard lock(mutex_);
  return stopping_ ? "stopping" : phase_;
}

std::string ModelHost::phase_detail() const {
  const std::lock_guard lock(mutex_);
  return detail_;
}

void ModelHost::begin(const std::string& phase, const std::string& detail) {
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

void ModelHost::drop_current() {
  std::shared_ptr<ServedModel> model = current();
  if (model == nullptr) return;
  drain(model->engine(), drain_timeout_, Error(Code::kCancelled, "the model is being unloaded"));
  {
    const std::lock_guard lock(mutex_);
    model_.reset();
  }
  // A handler may hold it for a moment longer; its memory must be free before the next one is
  // planned.
  const std::weak_ptr<ServedModel> watch = model;
  model.reset();
  while (!watch.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  log_info("model unloaded");
}

void ModelHost::announce_load(const ModelOptions& options) {
  const std::lock_guard lock(mutex_);
  phase_ = "loading";
  detail_ = options.model;
}

void ModelHost::load(const ModelOptions& options) {
  // What is wrong with the files is told before the model that serves now gives way.
  if (current() != nullptr) ServedModel::check(options);
  begin("loading", options.model);
  std::shared_ptr<ServedModel> loaded;
  try {
    drop_current();
    {
      const std::lock_guard lock(mutex_);
      phase_ = "loading";
    }
    ModelOptions stoppable = options;
    stoppable.stop = stop_.get_token();
    loaded = ServedModel::load(stoppable);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    phase_ = "failed";
    detail_ = error.what();
    throw;
  }
  const std::lock_guard lock(mutex_);
  busy_ = false;
  model_ = std::move(loaded);
  phase_ = "ready";
  detail_.clear();
}

void ModelHost::unload() {
  begin("no model", "");
  drop_current();
  const std::lock_guard lock(mutex_);
  busy_ = false;
  phase_ = "no model";
  detail_.clear();
}

void ModelHost::refuse_new_work() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.request_stop();
}

}  // namespace tgi::daemon
