// The adapters that a model's requests may name: each a folder that was opened, checked against the
// model and mapped, and stays so until it is unloaded. Safe from any thread.
//
// What changes in a folder makes another adapter of it, for requests that come later; nothing that
// was computed with the one before is taken for the new one's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/lora/adapter_files.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/runtime/engine.h"
#include "ipc/protocol.h"

namespace tgi {

class AdapterStore {
 public:
  // `engine` outlives it. `base`: the model's folder, for adapters that bring copies of its
  // embedding; empty: there is none.
  AdapterStore(LoadedConfig model,
               const LoadWeightsOptions& weights,
               int32_t num_ranks,
               std::string base,
               Engine& engine);

  // The adapter in `folder`, which has this name from now on. Throws kAdapter saying which adapter
  // and what is wrong.
  std::shared_ptr<const HostAdapter> load(const std::string& name, const std::string& folder);

  // Throws kAdapter when no adapter has the name, listing those that there are.
  std::shared_ptr<const HostAdapter> find(const std::string& name);

  // Whether the adapter stays on the device although no request wants it. Throws as find.
  void pin(const std::string& name, bool pinned);

  // From now on no adapter has the name; requests that have this one end with it. Then `on_gone` is
  // called, on the engine's thread; it may not throw. (optional) Throws as find.
  void unload(const std::string& name, std::function<void()> on_gone = {});

  std::vector<ipc::AdapterStatus> list() const;

 private:
  // When a file's bytes may have changed, so has this.
  using FileStamp = std::vector<int64_t>;
  struct Entry {
    std::string folder;
    FileStamp stamp;
    AdapterFacts facts;
    std::shared_ptr<const HostAdapter> adapter;
    bool is_pinned = false;
    int64_t num_requests = 0;
    Clock::time_point last_used;
  };

  static FileStamp stamp_of(const std::string& folder);
  Entry open(const std::string& name, const std::string& folder);
  Entry& require(const std::string& name);
  std::shared_ptr<const HostAdapter> use(Entry& entry) const;

  const LoadedConfig model_;
  const LoadWeightsOptions weights_;
  const int32_t num_ranks_;
  const std::string base_;
  Engine& engine_;
  std::atomic<int64_t> last_id_{0};
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by name; guarded by mutex_
};

}  // namespace tgi
