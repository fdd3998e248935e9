// The adapters that a model's requests may name: each a folder that was opened, checked against the
// model and mapped, and stays so until it is unloaded. Safe from any thread.
//
// What changes in a folder makes another adapter of it, for requests that come later; nothing that
// was computed with the one before is taken for the new one's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/lora/adapter_files.h"
#include "engine/model/architecture.h"
#include "engine/model/model_weights.h"
#include "engine/runtime/engine.h"
#include "ipc/protocol.h"

namespace tgi {

inline constexpr size_t kMaxMergesKept = 32;  // as LoRAX

class AdapterStore {
 public:
  // `engine` outlives it. `base`: the model's folder, for adapters that bring copies of its
  // embedding; empty: there is none. `merges_factors`: by LoRAX's arithmetic.
  AdapterStore(LoadedConfig model,
               const LoadWeightsOptions& weights,
               int32_t num_ranks,
               std::string base,
               Engine& engine,
               bool merges_factors = false);

  // The adapter in `folder`, which has this name from now on. One that was pinned under that name
  // leaves that to it where it fits. Throws kAdapter saying which adapter and what is wrong, or
  // that the model takes none.
  std::shared_ptr<const HostAdapter> load(const std::string& name, const std::string& folder);

  // Throws kAdapter when no adapter has the name, listing those that there are.
  std::shared_ptr<const HostAdapter> find(const std::string& name);

  // What several make together; each is loaded, or found, as above. Those asked for last are kept,
  // kMaxMergesKept of them, until one that they are made of changes or is unloaded. Made by one
  // thread at a time. Throws as load and find, what merge_adapters throws as kAdapter, and
  // kCancelled when `stop` ends it.
  std::shared_ptr<const HostAdapter> merged(const ipc::MergedAdapters& asked,
                                            std::stop_token stop = {});

  // Whether the adapter stays on the device although no request wants it. Throws as find, and
  // kAdapter when there is no room for all that are pinned.
  void pin(const std::string& name, bool pinned);

  // From now on no adapter has the name; requests that have this one end with it. Then `on_gone` is
  // called, on the engine's thread; it may not throw. (optional) Throws as find.
  void unload(const std::string& name, std::function<void()> on_gone = {});

  std::vector<ipc::AdapterStatus> list() const;
  int64_t count() const;

 private:
  // When a file's bytes may have changed, so has this.
  using FileStamp = std::vector<int64_t>;
  // Written by the engine's thread when a pin ends by a failure.
  class PinState {
   public:
    void fail(std::string problem);
    std::string problem() const;  // "": there is none

   private:
    mutable std::mutex mutex_;
    std::string problem_;
  };
  struct Entry {
    bool is_pinned() const { return pin != nullptr && pin->problem().empty(); }

    std::string folder;
    FileStamp stamp;
    AdapterFacts facts;
    std::shared_ptr<const HostAdapter> adapter;
    std::shared_ptr<PinState> pin;  // null: it is not pinned
    int64_t num_requests = 0;
    Clock::time_point last_used;
  };

  static FileStamp stamp_of(const std::string& folder);
  Entry open(const std::string& name, const std::string& folder);
  Entry& require(const std::string& name);
  void pin_now(Entry& entry);
  void keep_pinned(Entry& entry);
  // Nothing: it may be pinned.
  std::optional<std::string> pin_problem(const HostAdapter& adapter) const;
  std::shared_ptr<const HostAdapter> use(Entry& entry) const;
  enum class Unknown : uint8_t { kTaken, kRefused };  // what is a name that no adapter has
  std::shared_ptr<const HostAdapter> bring(const std::string& name,
                                           const std::string& folder,
                                           Unknown unknown);
  void forget(int64_t adapter, std::function<void()> on_gone = {});

  // What was merged, and of which: their ids are others when their files have changed.
  struct Merge {
    std::string name;  // of all that it depends on but files
    std::vector<int64_t> adapters;
    std::shared_ptr<const HostAdapter> adapter;
  };
  std::shared_ptr<const HostAdapter> make_merged(
      const ipc::MergedAdapters& asked,
      const std::string& name,
      const std::vector<std::shared_ptr<const HostAdapter>>& adapters,
      std::stop_token stop);
  std::shared_ptr<const HostAdapter> keep(Merge merge);

  const LoadedConfig model_;
  const LoadWeightsOptions weights_;
  const int32_t num_ranks_;
  const std::string base_;
  Engine& engine_;
  const bool merges_factors_;
  std::atomic<int64_t> last_id_{0};
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by name; guarded by mutex_
  std::mutex merging_mutex_;              // held while one is made; before merges_mutex_
  std::mutex merges_mutex_;
  std::list<Merge> merges_;  // the last one asked for in front; guarded by merges_mutex_
};

}  // namespace tgi
