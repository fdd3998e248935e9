// The models that the daemon serves: the default one, which requests that name none go to, and any
// number beside it, each under a name. Each is a ModelSlot with phases of its own: what happens to
// one changes nothing of another. Safe from any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model_slot.h"

namespace tgi::daemon {

// A model as requests name it; nothing: the default one.
using ModelName = std::optional<std::string>;

class ModelHost {
 public:
  explicit ModelHost(std::chrono::milliseconds drain_timeout);

  // The model of that name, ready. The default one is also found by its own name and by what it was
  // loaded from. Throws what ModelSlot::require throws, and kNotFound for a name that is none, with
  // those there are.
  std::shared_ptr<ServedModel> require(const ModelName& name = {}) const;

  // The default model, null: none; and its phase.
  std::shared_ptr<ServedModel> current() const { return default_->current(); }
  std::string phase() const { return default_->phase(); }
  std::string phase_detail() const { return default_->phase_detail(); }

  // Those beside the default one, by name; and all of them, the default one first, under "" if it
  // has no name.
  using Named = std::pair<std::string, std::shared_ptr<const ModelSlot>>;
  std::vector<Named> beside() const;
  std::vector<Named> all() const;

  // Loads into the slot of options.name, which is made when there is none; without a name, or where
  // there is no default model, into that of the default one. Throws what ModelSlot::load throws,
  // and kOutOfMemory with what the others hold; a slot that was made for it is gone then. Gives the
  // model, null when it is gone already.
  std::shared_ptr<ServedModel> load(const ModelOptions& options);
  // As ModelSlot's. The slot stays, whatever becomes of the load.
  void announce_load(const ModelOptions& options);
  // Throws kNotFound for a name that is none.
  void unload(const ModelName& name = {});

  void refuse_new_work();

 private:
  std::shared_ptr<ModelSlot> find(const ModelName& name) const;  // null: none
  std::shared_ptr<ModelSlot> find_or_throw(const ModelName& name) const;
  std::shared_ptr<ModelSlot> place_of(const std::string& name, bool& is_new);
  std::string describe_others(const ModelSlot& slot) const;
  int64_t promised_bytes(const ModelSlot& slot) const;  // by the others, as in LoadRanksOptions

  const std::chrono::milliseconds drain_timeout_;
  const std::shared_ptr<ModelSlot> default_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<ModelSlot>> beside_;  // guarded by mutex_, as all below
  bool stopping_ = false;
};

// Of its KV cache, what no block that is used or cached stands in: an estimate from above, for a
// block that was used once keeps its memory.
int64_t untouched_kv_bytes(const ipc::ModelStatus& status);

}  // namespace tgi::daemon
