// The place of one model of the daemon, and the way from one to the next: loading, ready, draining,
// none. Safe from any thread.
//
// A model lives as long as somebody holds it: whoever works with it takes a shared_ptr for that
// moment, so that unload never pulls it away under a handler.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "engine/runtime/prepared_model.h"
#include "engine/runtime/served_model.h"

namespace tgi::daemon {

class ModelSlot {
 public:
  explicit ModelSlot(std::chrono::milliseconds drain_timeout) : drain_timeout_(drain_timeout) {}

  // The model that is ready. Throws kOverloaded saying why there is none (loading, draining) or
  // kNotFound (none loaded).
  std::shared_ptr<ServedModel> require() const;

  std::shared_ptr<ServedModel> current() const;  // null: none

  // Blocks until the model is ready. A model that was there before finishes its requests first (up
  // to the drain timeout) and is dropped before the new one takes memory. Throws what
  // prepare_model, check_fits and ServedModel::load throw. The first two find what can be known
  // before the weights are read, and the model that was there serves on. After damaged weights, a
  // failing disk or memory that somebody else took meanwhile it is loaded again, and the error says
  // so, or why that did not work either. Throws kOverloaded when another load or unload is under
  // way.
  void load(const ModelOptions& options);

  // The phase is "loading" from now on, before load is called on another thread: who asks in
  // between must not be told that there will be no model.
  void announce_load(const ModelOptions& options);
  void unload();

  // From now on nothing is taken any more: the daemon stops. A load that is under way ends soon
  // with kCancelled.
  void refuse_new_work();

  // What requests call the model that is there or being loaded; "": it has no name.
  std::string name() const;
  // Whether that is its name, or what it was loaded from.
  bool is_called(const std::string& name) const;

  // The progress of the loaded model's engine; nothing without a model.
  EngineProgress progress() const;

  // "no model", "loading", "ready", "draining", "failed", "stopping"
  std::string phase() const;
  std::string phase_detail() const;

 private:
  void begin(const std::string& phase, const std::string& detail);
  void drop_current();
  void set_loading(const ModelOptions& options);
  void set_ready(std::unique_ptr<ServedModel> model);
  void set_failed(const std::string& reason);
  std::unique_ptr<PreparedModel> prepare_beside_current(const ModelOptions& options) const;
  Error load_again(const ModelOptions& before, const Error& failure);

  const std::chrono::milliseconds drain_timeout_;
  mutable std::mutex mutex_;
  std::shared_ptr<ServedModel> model_;  // guarded by mutex_, as all below
  std::string name_;
  std::string phase_ = "no model";
  std::string detail_;
  bool busy_ = false;  // a load or unload is under way
  bool stopping_ = false;
  std::stop_source stop_;  // of loads; safe by itself
};

// Waits until the engine has no request left; after `timeout` those that still run are told
// `error`.
void drain(Engine& engine, std::chrono::milliseconds timeout, const Error& error);

}  // namespace tgi::daemon
