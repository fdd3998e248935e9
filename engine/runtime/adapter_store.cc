// See adapter_store.h.
#include "engine/runtime/adapter_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/files/file_source.h"
#include "base/log.h"
#include "engine/gguf/model_files.h"
#include "engine/lora/adapter_source.h"
#include "engine/lora/stated_base.h"
#include "engine/runtime/memory_plan.h"
#include "engine/runtime/opened_adapter.h"

namespace tgi {
namespace {

constexpr size_t kMostListed = 20;

Error adapter_error(const std::string& name, const std::exception& error) {
  return Error(Code::kAdapter, fmt::format("adapter {}: {}", name, error.what()));
}

}  // namespace

AdapterStore::AdapterStore(LoadedConfig model,
                           const LoadWeightsOptions& weights,
                           int32_t num_ranks,
                           std::string base,
                           Engine& engine,
                           bool merges_factors)
    : model_(std::move(model)),
      weights_(weights),
      num_ranks_(num_ranks),
      base_(std::move(base)),
      engine_(engine),
      merges_factors_(merges_factors) {}

void AdapterStore::PinState::fail(std::string problem) {
  const std::lock_guard lock(mutex_);
  problem_ = std::move(problem);
}

std::string AdapterStore::PinState::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

AdapterStore::FileStamp AdapterStore::stamp_of(const std::string& folder) {
  FileStamp out;
  for (const std::string& file : adapter_paths(folder)) {
    struct stat facts {};
    const bool is_there = ::stat(file.c_str(), &facts) == 0;
    if (!is_there) facts = {};
    for (const int64_t number :
         {static_cast<int64_t>(facts.st_dev), static_cast<int64_t>(facts.st_ino),
          static_cast<int64_t>(facts.st_size), static_cast<int64_t>(facts.st_mtim.tv_sec),
          static_cast<int64_t>(facts.st_mtim.tv_nsec)}) {
      out.push_back(number);
    }
  }
  return out;
}

AdapterStore::Entry AdapterStore::open(const std::string& name, const std::string& folder) {
  try {
    Entry entry;
    entry.folder = folder;
    entry.stamp = stamp_of(folder);
    auto files = std::make_shared<OpenedAdapter>();
    files->folder = open_adapter_source(folder);
    const std::unique_ptr<FileSource> base_files =
        base_.empty() ? nullptr : open_model_files(base_);
    const std::unique_ptr<Checkpoint> base =
        base_files == nullptr ? nullptr : open_checkpoint(*base_files);
    auto adapter = std::make_shared<HostAdapter>();
    made_of_intact(*files->folder, [&] {
      files->adapter = open_adapter(*files->folder, model_, base.get());
      adapter->parts = parts_of_ranks(files->adapter, model_, weights_, num_ranks_);
      return true;
    });
    entry.facts = files->adapter.facts;
    if (const auto doubt = doubt_about_base(entry.facts.base_model, base_, model_)) {
      log_warn("adapter of another model?", {{"adapter", name}, {"doubt", *doubt}});
    }
    adapter->id = ++last_id_;
    adapter->name = name;
    adapter->device_bytes = engine_.adapter_bytes(adapter->parts);
    adapter->files = std::move(files);
    entry.adapter = std::move(adapter);
    return entry;
  } catch (const std::exception& error) {
    throw adapter_error(name, error);
  }
}

std::shared_ptr<const HostAdapter> AdapterStore::use(Entry& entry) const {
  ++entry.num_requests;
  entry.last_used = Clock::now();
  return entry.adapter;
}

std::shared_ptr<const HostAdapter> AdapterStore::load(const std::string& name,
                                                      const std::string& folder) {
  return bring(name, folder, Unknown::kTaken);
}

std::shared_ptr<const HostAdapter> AdapterStore::bring(const std::string& name,
                                                       const std::string& folder,
                                                       Unknown unknown) {
  engine_.require_adapters(name);
  const auto is_current = [&](const Entry& entry) {
    return entry.folder == folder && entry.stamp == stamp_of(folder);
  };
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(name);
    if (it != entries_.end() && is_current(it->second)) return use(it->second);
  }
  // Not under the lock: it reads files. Who did the same meanwhile was first.
  Entry opened = open(name, folder);
  const std::lock_guard lock(mutex_);
  // What was unloaded meanwhile does not come back by a request that only names it.
  if (unknown == Unknown::kRefused) (void)require(name);
  const auto [it, is_new] = entries_.try_emplace(name);
  Entry& entry = it->second;
  if (!is_new && is_current(entry)) return use(entry);
  if (!is_new) {
    forget(entry.adapter->id);
    opened.pin = entry.pin;
    opened.num_requests = entry.num_requests;
  }
  entry = std::move(opened);
  if (entry.pin != nullptr) keep_pinned(entry);
  return use(entry);
}

void AdapterStore::pin_now(Entry& entry) {
  entry.pin = std::make_shared<PinState>();
  engine_.pin_adapter(entry.adapter,
                      [pin = entry.pin](const Error& error) { pin->fail(error.what()); });
}

// Of one that has another's place by the same name.
void AdapterStore::keep_pinned(Entry& entry) {
  if (const auto problem = pin_problem(*entry.adapter)) {
    log_warn("adapter no longer pinned", {{"error", *problem}});
    entry.pin = nullptr;
  } else {
    pin_now(entry);
  }
}

// A pin promises that all that are pinned are on the device at once.
std::optional<std::string> AdapterStore::pin_problem(const HostAdapter& adapter) const {
  int64_t bytes = adapter.device_bytes;
  int32_t count = 1;
  for (const auto& [name, entry] : entries_) {
    if (!entry.is_pinned() || name == adapter.name) continue;
    bytes += entry.adapter->device_bytes;
    ++count;
  }
  const AdapterPoolOptions& limits = engine_.adapter_limits();
  const std::string refusal = fmt::format("adapter {}: it can't be pinned: ", adapter.name);
  if (count > limits.max_active) {
    return refusal + fmt::format(
                         "pinned adapters have all {} places that there are; unpin one, or "
                         "give --max-active-adapters more",
                         limits.max_active);
  }
  if (bytes > limits.memory_bytes) {
    return refusal + fmt::format(
                         "with those that are, {} of memory would be held for pinned ones, "
                         "and adapters have {}; unpin one, or give "
                         "--adapter-memory-fraction more",
                         format_bytes(bytes), format_bytes(limits.memory_bytes));
  }
  return std::nullopt;
}

AdapterStore::Entry& AdapterStore::require(const std::string& name) {
  const auto it = entries_.find(name);
  if (it != entries_.end()) return it->second;
  std::string known;
  size_t count = 0;
  for (const auto& [other, entry] : entries_) {
    if (++count > kMostListed) break;
    known += (known.empty() ? "" : ", ") + other;
  }
  if (count > kMostListed) known += fmt::format(" and {} more", entries_.size() - kMostListed);
  throw Error(Code::kAdapter, fmt::format("adapter {}: no adapter of that name is loaded; {}", name,
                                          known.empty() ? "none is" : "there are: " + known));
}

std::shared_ptr<const HostAdapter> AdapterStore::find(const std::string& name) {
  std::string folder;
  {
    const std::lock_guard lock(mutex_);
    folder = require(name).folder;
  }
  return bring(name, folder, Unknown::kRefused);
}

void AdapterStore::pin(const std::string& name, bool pinned) {
  const std::lock_guard lock(mutex_);
  Entry& entry = require(name);
  if (pinned) {
    if (const auto problem = pin_problem(*entry.adapter)) throw Error(Code::kAdapter, *problem);
    pin_now(entry);
  } else {
    engine_.unpin_adapter(entry.adapter->id);
    entry.pin = nullptr;
  }
}

void AdapterStore::unload(const std::string& name, std::function<void()> on_gone) {
  const std::lock_guard lock(mutex_);
  forget(require(name).adapter->id, std::move(on_gone));
  entries_.erase(name);
}

// With what was merged of it.
void AdapterStore::forget(int64_t adapter, std::function<void()> on_gone) {
  engine_.forget_adapter(adapter, std::move(on_gone));
  const std::lock_guard lock(merges_mutex_);
  std::erase_if(merges_, [&](const Merge& merge) {
    if (std::ranges::find(merge.adapters, adapter) == merge.adapters.end()) return false;
    engine_.forget_adapter(merge.adapter->id);
    return true;
  });
}

std::vector<ipc::AdapterStatus> AdapterStore::list() const {
  const EngineStats stats = engine_.stats();
  const auto now = Clock::now();
  std::vector<ipc::AdapterStatus> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    const auto it = stats.adapters.find(entry.adapter->id);
    const auto standing = it == stats.adapters.end() ? AdapterPool::Standing{} : it->second;
    out.push_back({.name = name,
                   .path = entry.folder,
                   .base_model = entry.facts.base_model,
                   .max_rank = entry.facts.max_rank,
                   .num_linears = entry.facts.num_linears,
                   .targets = entry.facts.targets,
                   .file_bytes = entry.facts.size_bytes,
                   .device_bytes = entry.adapter->device_bytes,
                   .state = standing.is_active    ? "active"
                            : standing.is_loading ? "loading"
                                                  : "host",
                   .pinned = entry.is_pinned(),
                   .pin_error = entry.pin == nullptr ? "" : entry.pin->problem(),
                   .num_requests = entry.num_requests,
                   .num_running = standing.num_running,
                   .num_waiting = standing.num_waiting,
                   .idle_seconds = std::chrono::duration<double>(now - entry.last_used).count()});
  }
  return out;
}

int64_t AdapterStore::count() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(entries_);
}

}  // namespace tgi
