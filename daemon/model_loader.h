// Loads models when requests ask for them, and takes away those whose time is over. Loads happen
// one after the other, in the order in which they were asked for; each first finds out which models
// give way to it (room_plan.h), waits until these have no use left, and is then done. Waiting takes
// no thread: what is to be done then is kept, and a job begins when it can.
//
// A model that is loaded in the place of one that serves is loaded beside it, if it fits, and takes
// the new requests when it is ready; else those wait until the old one's have ended.
//
// A model that gives way takes no new requests: they wait for it to be loaded again, behind what
// was asked for before, so that no model is starved by others that are always busy. Safe from any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/jobs.h"
#include "daemon/model_host.h"

namespace tgi::daemon {

struct ModelLoaderOptions {
  int32_t max_models = 0;     // loaded at once; 0: as many as fit
  size_t max_waiting = 8192;  // requests that wait for models
};

class ModelLoader {
 public:
  using KeepAlive = std::optional<std::chrono::milliseconds>;
  // Called once, on the thread that loads: with the model, or with what came in between.
  using OnLease = std::function<void(ModelLease* lease, const Error* error)>;
  using OnEnd = std::function<void(const std::shared_ptr<ServedModel>& model, const Error* error)>;

  // `loads` has one thread. Both outlive this; jobs of this that are left in `loads` must be
  // dropped or done before it ends.
  ModelLoader(ModelHost& models, Jobs& loads, const ModelLoaderOptions& options)
      : models_(models), loads_(loads), options_(options) {}

  // The model, if it is there; else nothing, and `waiter` waits: `on_lease` is called unless it
  // leaves. Throws what ModelSlot::try_lease throws, and kOverloaded when too many wait.
  std::optional<ModelLease> lease_or_wait(const ModelName& name,
                                          KeepAlive keep_alive,
                                          uint64_t waiter,
                                          OnLease on_lease);
  // The model, if it is there; else nothing.
  std::optional<ModelLease> try_lease(const ModelName& name, KeepAlive keep_alive);
  // Its client is gone. A load that nobody waits for any more does not begin.
  void leave(uint64_t waiter);

  // Behind what was asked for before. `on_end` is called once. (optional) `names_default`: as
  // ModelHost's.
  void load(const ModelOptions& options,
            const ModelTerms& terms,
            OnEnd on_end,
            bool names_default = false);
  // On the thread of the loads, at once. Who waits for it is told that it was unloaded, if it does
  // not keep its name.
  void unload(const ModelName& name, bool keeps_name);

  // Begins what can begin by now. To be called whenever a use has ended, and when the time that it
  // gives is over; nothing: there is none.
  std::optional<std::chrono::milliseconds> look(std::chrono::steady_clock::time_point now);

  // Whoever waits is told that the daemon stops, and nothing begins any more.
  void stop();

  // Requests that wait for this model.
  int64_t num_waiting(const ModelSlot& slot) const;

 private:
  enum class Stage { kQueued, kRunning, kMakingRoom };
  struct Waiter {
    uint64_t id = 0;
    KeepAlive keep_alive;
    OnLease on_lease;
  };
  struct Load {
    std::shared_ptr<ModelSlot> slot{};    // null: to be found when it begins
    std::optional<ModelOptions> asked{};  // none: what the slot is enrolled with
    ModelTerms terms{};
    bool names_default = false;
    OnEnd on_end{};
    std::vector<Waiter> waiters{};
    Stage stage = Stage::kQueued;
    bool is_new = false;         // the slot was made for it
    bool waits_for_own = false;  // for the requests of the model that stands in the slot
    std::unique_ptr<PreparedModel> prepared{};
    std::vector<std::shared_ptr<ModelSlot>> giving_way{};

    bool is_wanted() const { return asked.has_value() || !waiters.empty(); }
  };
  using LoadPtr = std::shared_ptr<Load>;

  void begin_next();
  void post(const LoadPtr& load, void (ModelLoader::*work)(const LoadPtr&));
  void plan(const LoadPtr& load);
  void make_room_and_load(const LoadPtr& load);
  void end(const LoadPtr& load);
  void fail(const LoadPtr& load, const Error& error);
  void remove(const LoadPtr& load);
  bool is_wanted(const LoadPtr& load) const;  // throws when the daemon stops
  void drop_ended(const std::shared_ptr<ModelSlot>& slot);
  void expire(const std::shared_ptr<ModelSlot>& slot);
  std::optional<std::chrono::milliseconds> look_for_expired(
      std::chrono::steady_clock::time_point now);

  ModelHost& models_;
  Jobs& loads_;
  const ModelLoaderOptions options_;
  mutable std::mutex mutex_;
  std::deque<LoadPtr> queue_;  // the first is worked on; guarded by mutex_, as all below
  size_t num_waiting_ = 0;
  std::vector<const ModelSlot*> expiring_;  // with a job for it
  bool stopping_ = false;
};

}  // namespace tgi::daemon
