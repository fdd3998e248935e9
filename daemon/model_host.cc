#include "daemon/model_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/runtime/memory_plan.h"

namespace tgi::daemon {

ModelHost::ModelHost(std::chrono::milliseconds drain_timeout)
    : drain_timeout_(drain_timeout), default_(std::make_shared<ModelSlot>(drain_timeout)) {}

std::vector<ModelHost::Named> ModelHost::beside() const {
  const std::lock_guard lock(mutex_);
  return {beside_.begin(), beside_.end()};
}

std::vector<ModelHost::Named> ModelHost::all() const {
  std::vector<Named> out = beside();
  out.emplace(out.begin(), default_->name(), default_);
  return out;
}

std::shared_ptr<ModelSlot> ModelHost::find(const ModelName& name) const {
  if (!name) return default_;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = beside_.find(*name); it != beside_.end()) return it->second;
  }
  return default_->is_called(*name) ? default_ : nullptr;
}

std::shared_ptr<ModelSlot> ModelHost::find_or_throw(const ModelName& name) const {
  if (auto slot = find(name)) return slot;
  std::vector<std::string> names;
  for (const auto& [each, slot] : all()) {
    const auto model = slot->current();
    if (!each.empty()) {
      names.push_back(each);
    } else if (model != nullptr) {
      names.push_back(model->options().model);
    }
  }
  throw Error(
      Code::kNotFound,
      fmt::format("no model is called {}; there {}", name->substr(0, 200),
                  names.empty() ? "is none" : fmt::format("are: {}", fmt::join(names, ", "))));
}

std::shared_ptr<ServedModel> ModelHost::require(const ModelName& name) const {
  return find_or_throw(name)->require();
}

std::shared_ptr<ModelSlot> ModelHost::place_of(const std::string& name, bool& is_new) {
  const std::lock_guard lock(mutex_);
  const auto it = beside_.find(name);
  is_new = false;
  if (it != beside_.end()) return it->second;
  if (name.empty() || default_->name() == name) return default_;
  if (default_->phase() == "no model") return default_;
  is_new = true;
  auto slot = std::make_shared<ModelSlot>(drain_timeout_);
  if (stopping_) slot->refuse_new_work();
  return beside_.emplace(name, std::move(slot)).first->second;
}

// "a 1.2 GiB, b 300.0 MiB"; empty: there are none.
std::string ModelHost::describe_others(const ModelSlot& slot) const {
  std::vector<std::string> out;
  for (const auto& [name, other] : all()) {
    const auto model = other->current();
    if (other.get() == &slot || model == nullptr) continue;
    out.push_back(fmt::format("{} {}", name.empty() ? model->options().model : name,
                              format_bytes(model->status().memory.held())));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

int64_t untouched_kv_bytes(const ipc::ModelStatus& status) {
  if (status.num_blocks == 0) return 0;
  const int64_t touched = status.num_blocks_used + status.num_blocks_cached;
  return status.memory.kv_cache / status.num_blocks * (status.num_blocks - touched);
}

int64_t ModelHost::promised_bytes(const ModelSlot& slot) const {
  int64_t out = 0;
  for (const auto& [name, other] : all()) {
    const auto model = other->current();
    if (other.get() != &slot && model != nullptr) out += untouched_kv_bytes(model->status());
  }
  return out;
}

std::shared_ptr<ServedModel> ModelHost::load(const ModelOptions& asked) {
  ModelOptions options = asked;
  bool is_new = false;
  const std::shared_ptr<ModelSlot> slot = place_of(options.name, is_new);
  const auto forget = [&] {
    const std::lock_guard lock(mutex_);
    if (is_new) beside_.erase(options.name);
  };
  options.promised_bytes = promised_bytes(*slot);
  try {
    slot->load(options);
    return slot->current();
  } catch (const Error& error) {
    forget();
    const std::string others = describe_others(*slot);
    if (error.code() != Code::kOutOfMemory || others.empty()) throw;
    throw Error(Code::kOutOfMemory,
                fmt::format("{}; loaded beside it: {}, which go on; `tgi unload NAME` makes room",
                            error.what(), others));
  } catch (...) {
    forget();
    throw;
  }
}

void ModelHost::announce_load(const ModelOptions& options) {
  bool is_new = false;
  place_of(options.name, is_new)->announce_load(options);
}

void ModelHost::unload(const ModelName& name) {
  const std::shared_ptr<ModelSlot> slot = find_or_throw(name);
  slot->unload();
  const std::lock_guard lock(mutex_);
  std::erase_if(beside_, [&](const auto& each) { return each.second == slot; });
}

void ModelHost::refuse_new_work() {
  default_->refuse_new_work();
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& [name, slot] : beside_) slot->refuse_new_work();
}

}  // namespace tgi::daemon
