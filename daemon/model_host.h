// The models that the daemon serves: the default one, which requests that name none go to, and any
// number beside it, each under a name. Each is a ModelSlot with phases of its own: what happens to
// one changes nothing of another. Safe from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/model_slot.h"

namespace tgi::daemon {

// A model as requests name it; nothing: the default one.
using ModelName = std::optional<std::string>;

class ModelHost {
 public:
  // `on_unused`: as UseCount's, of any model.
  explicit ModelHost(std::chrono::milliseconds drain_timeout, std::function<void()> on_unused = {});

  // The model of that name, ready. The default one is also found by its own name and by what it was
  // loaded from. Throws what ModelSlot::require throws, and kNotFound for a name that is none, with
  // those there are.
  std::shared_ptr<ServedModel> require(const ModelName& name = {}) const;

  // The default model, null: none; and its phase.
  std::shared_ptr<ServedModel> current() const { return default_->current(); }
  std::string phase() const { return default_->phase(); }
  std::string phase_detail() const { return default_->phase_detail(); }

  const ModelSlot& default_slot() const { return *default_; }

  // Those beside the default one, by name; and all of them, the default one first, under "" if it
  // has no name.
  using Named = std::pair<std::string, std::shared_ptr<ModelSlot>>;
  std::vector<Named> beside() const;
  std::vector<Named> all() const;

  // The slot of the model of that name. Throws kNotFound with those there are.
  std::shared_ptr<ModelSlot> find_or_throw(const ModelName& name) const;

  // A model that is loaded when a request asks for it; that of this name, if there is one.
  // `names_default`: the name means the default model, by what that was loaded from.
  void enroll(const ModelOptions& options, const ModelTerms& terms, bool names_default = false);
  // Of a name that no other model has: where that of `options` is taken, NAME-2 or the first after
  // it that is free, and where the model is there by one of those, that one, which stays as it is.
  struct Enrolled {
    std::string name;
    bool is_new = false;
  };
  Enrolled enroll_beside(ModelOptions options, const ModelTerms& terms, bool names_default = false);

  // Where such a model is to be loaded, and whether the place was made for it. Throws
  // kInvalidArgument where it has no name, and what it is loaded from is the name of another.
  struct Place {
    std::shared_ptr<ModelSlot> slot;
    bool is_new = false;
  };
  Place place_of(const ModelOptions& options, bool names_default = false);
  void forget(const ModelSlot& slot);

  // As in LoadRanksOptions, by all but this one and those that give way; by all.
  int64_t promised_bytes(const ModelSlot& slot,
                         std::span<const std::shared_ptr<ModelSlot>> giving_way = {}) const;
  int64_t promised_bytes() const;
  // What others hold: "a 1.2 GiB, b 300.0 MiB"; empty: there are none.
  std::string describe_others(const ModelSlot& slot) const;

  // Loads into the slot of options.name, which is made when there is none; without a name, or where
  // there is no default model, into that of the default one. Throws what ModelSlot::load throws,
  // and kOutOfMemory with what the others hold; a slot that was made for it is gone then. Gives the
  // model, null when it is gone already.
  std::shared_ptr<ServedModel> load(const ModelOptions& options);
  // As ModelSlot's. The slot stays, whatever becomes of the load.
  void announce_load(const ModelOptions& options);
  // Throws kNotFound for a name that is none. `keeps_name`: it comes back when a request asks.
  void unload(const ModelName& name = {}, bool keeps_name = false);

  void refuse_new_work();

 private:
  struct Wanted {
    bool is_to_be_loaded = true;
    bool names_default = false;
  };
  Place place_for(const std::string& name, const Wanted& wanted);
  void refuse_taken_path(const std::string& path) const;
  std::shared_ptr<ModelSlot> find(const ModelName& name) const;  // null: none

  const std::chrono::milliseconds drain_timeout_;
  const std::function<void()> on_unused_;
  const std::shared_ptr<ModelSlot> default_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<ModelSlot>> beside_;  // guarded by mutex_, as all below
  bool stopping_ = false;
};

}  // namespace tgi::daemon
