// The place of one model of the daemon, and the way from one to the next: registered, loading,
// ready, draining, none. Safe from any thread; loads and unloads are one thread's at a time.
//
// A model lives as long as somebody holds it: whoever works with it takes a shared_ptr for that
// moment, so that unload never pulls it away under a handler. Who has a request in its engine holds
// a use of it (model_use.h), so that it does not give way before the request has ended.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/model_use.h"
#include "engine/runtime/prepared_model.h"
#include "engine/runtime/served_model.h"

namespace tgi::daemon {

// How long a model stays.
struct ModelTerms {
  bool is_pinned = false;                    // it neither gives way to another nor expires
  std::chrono::milliseconds keep_alive{-1};  // without a request; below 0: for ever
};

// A model, and the right to use it.
struct ModelLease {
  std::shared_ptr<ServedModel> model;
  ModelUse use;
};

// What is told of a slot, of one moment.
struct SlotStanding {
  std::string phase;
  std::string detail;
  std::string path;                      // what it was or will be loaded from
  std::shared_ptr<ServedModel> model;    // null: none is loaded
  std::optional<ipc::ModelStatus> last;  // of the one that was loaded last
  ModelTerms terms;
  int64_t num_uses = 0;
  int64_t num_uses_before = 0;  // of the models that it replaced
  std::optional<std::chrono::steady_clock::time_point> last_used{};  // of what was ever loaded
  std::optional<std::chrono::steady_clock::time_point> expires_at{};
};

class ModelSlot {
 public:
  // `on_unused`: as UseCount's.
  explicit ModelSlot(std::chrono::milliseconds drain_timeout, std::function<void()> on_unused = {})
      : drain_timeout_(drain_timeout), on_unused_(std::move(on_unused)) {}

  // The model that is ready. Throws kOverloaded saying why there is none (loading, draining) or
  // kNotFound (none loaded).
  std::shared_ptr<ServedModel> require() const;

  // The model with the right to use it. Nothing: it is loaded when asked for, or gives way just
  // now, and is to be waited for. Throws what require throws. From now on it stays so long, if it
  // says so.
  std::optional<ModelLease> try_lease(std::optional<std::chrono::milliseconds> keep_alive);

  std::shared_ptr<ServedModel> current() const;  // null: none
  // That and those that it replaced, whose requests still run.
  std::vector<std::shared_ptr<ServedModel>> all_models() const;

  // It is known, and loaded when a request asks for it. A model that is there goes on.
  void enroll(const ModelOptions& options, const ModelTerms& terms);
  // What is to be loaded when a request asks; nothing: no request brings it.
  std::optional<ModelOptions> enrolled() const;
  void set_terms(const ModelTerms& terms);

  // Blocks until the model is ready. A model that was there before finishes its requests first (up
  // to the drain timeout) and is dropped before the new one takes memory. Throws what
  // prepare_model, check_fits and ServedModel::load throw. The first two find what can be known
  // before the weights are read, and the model that was there serves on. After damaged weights, a
  // failing disk or memory that somebody else took meanwhile it is loaded again, and the error says
  // so, or why that did not work either. Throws kOverloaded when another load or unload is under
  // way. `prepared`: the same, when it was checked already. (optional)
  void load(const ModelOptions& options, std::unique_ptr<PreparedModel> prepared = nullptr);

  // The same beside the model that is there, which serves on until the new one is ready: requests
  // that it has then run to their end, new ones go to the new one. `prepared` was planned for that.
  void load_beside(const ModelOptions& options, std::unique_ptr<PreparedModel> prepared);
  // Models that were replaced and have no use left; they go with whoever takes them.
  [[nodiscard]] std::vector<std::shared_ptr<ServedModel>> take_ended();
  bool has_ended() const;

  // The phase is "loading" from now on, before load is called on another thread: who asks in
  // between must not be told that there will be no model.
  void announce_load(const ModelOptions& options);
  void unload();

  // From now on requests wait for it, until set_aside or stay. Nothing happens where none is ready.
  void begin_giving_way();
  // The same, if nobody uses it and its time is over; says whether.
  [[nodiscard]] bool begin_to_expire(std::chrono::steady_clock::time_point now);
  void stay();
  bool is_unused() const;
  // When its time is over, should nobody use it until then.
  std::optional<std::chrono::steady_clock::time_point> expires_at() const;
  // As unload, but it comes back when a request asks for it, with the adapters that it had.
  void set_aside();
  // A load that never came to ServedModel::load.
  void set_failed(const std::string& reason);

  // From now on nothing is taken any more: the daemon stops. A load that is under way ends soon
  // with kCancelled.
  void refuse_new_work();

  // What requests call the model that is there or being loaded; "": it has no name.
  std::string name() const;
  // Whether that is its name, or what it was loaded from.
  bool is_called(const std::string& name) const;

  // The progress of the loaded model's engine; nothing without a model.
  EngineProgress progress() const;

  SlotStanding standing() const;
  // The adapters of a model that was set aside, which come back with it.
  ipc::AdapterList adapters_aside() const;
  // "no model", "not loaded" (it is when a request asks), "loading", "ready", "draining", "failed",
  // "stopping"
  std::string phase() const;
  std::string phase_detail() const;
  // While a load waits for something: what for.
  void set_phase_detail(const std::string& detail);

 private:
  std::optional<std::chrono::steady_clock::time_point> expiry() const;
  std::string path() const;
  void begin(const std::string& phase, const std::string& detail);
  void drop_current();
  void set_loading(const ModelOptions& options, const std::string& path);
  void set_ready(std::unique_ptr<ServedModel> model);
  void bring_adapters_back(ServedModel& model) const;
  std::unique_ptr<PreparedModel> prepare_beside_current(const ModelOptions& options) const;
  Error load_again(const ModelOptions& before, const std::string& path, const Error& failure);

  const std::chrono::milliseconds drain_timeout_;
  const std::function<void()> on_unused_;
  mutable std::mutex mutex_;
  std::shared_ptr<ServedModel> model_;  // guarded by mutex_, as all below
  std::shared_ptr<UseCount> uses_;      // of model_; stays when it is gone
  std::vector<std::pair<std::shared_ptr<ServedModel>, std::shared_ptr<UseCount>>> before_;
  std::string name_;
  std::string phase_ = "no model";
  std::string detail_;
  std::string path_;  // of the load that was begun last
  std::optional<ModelOptions> enrolled_;
  std::optional<ipc::ModelStatus> last_;
  std::vector<ipc::AdapterStatus> adapters_;  // of the model that was set aside
  ModelTerms terms_;
  bool gives_way_ = false;
  bool busy_ = false;  // a load or unload is under way
  bool stopping_ = false;
  std::stop_source stop_;  // of loads; safe by itself
};

// Waits until the engine has no request left; after `timeout` those that still run are told
// `error`.
void drain(Engine& engine, std::chrono::milliseconds timeout, const Error& error);

}  // namespace tgi::daemon
