#include "daemon/model_host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/runtime/memory_plan.h"
#include "engine/runtime/prepared_model.h"

namespace tgi::daemon {

ModelHost::ModelHost(std::chrono::milliseconds drain_timeout, std::function<void()> on_unused)
    : drain_timeout_(drain_timeout),
      on_unused_(std::move(on_unused)),
      default_(std::make_shared<ModelSlot>(drain_timeout, on_unused_)) {}

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
    const auto enrolled = slot->enrolled();
    if (!each.empty()) {
      names.push_back(each);
    } else if (model != nullptr) {
      names.push_back(model->options().model);
    } else if (enrolled) {
      names.push_back(enrolled->model);
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

void ModelHost::enroll(const ModelOptions& options, const ModelTerms& terms, bool names_default) {
  place_for(options.name, {.is_to_be_loaded = false, .names_default = names_default})
      .slot->enroll(options, terms);
}

// Under one lock: two who ask at once get two names, or the same model.
ModelHost::Enrolled ModelHost::enroll_beside(ModelOptions options,
                                             const ModelTerms& terms,
                                             bool names_default) {
  const std::lock_guard lock(mutex_);
  const std::string plain = options.name;
  const bool is_default_path = default_->name().empty() && default_->is_called(plain);
  for (int i = names_default || is_default_path ? 2 : 1;; ++i) {
    if (i > 1) options.name = fmt::format("{}-{}", plain, i);
    const auto it = beside_.find(options.name);
    const bool is_default = it == beside_.end() && default_->name() == options.name;
    if (it != beside_.end() || is_default) {
      const std::shared_ptr<ModelSlot>& other = is_default ? default_ : it->second;
      if (other->standing().path == options.model) return {options.name, false};
      continue;
    }
    auto slot = std::make_shared<ModelSlot>(drain_timeout_, on_unused_);
    if (stopping_) slot->refuse_new_work();
    slot->enroll(options, terms);
    beside_.emplace(options.name, std::move(slot));
    return {options.name, true};
  }
}

ModelHost::Place ModelHost::place_of(const ModelOptions& options, bool names_default) {
  if (options.name.empty()) refuse_taken_path(options.model);
  return place_for(options.name, {.names_default = names_default});
}

// A default model without a name is called by what it is loaded from.
void ModelHost::refuse_taken_path(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  if (!beside_.contains(path)) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{} is the name of another model that is there; give this one a name of "
                          "its own, or take the other away first: tgi unload {}",
                          path, path));
}

// What is not loaded yet does not take the default one's place, though it be free.
ModelHost::Place ModelHost::place_for(const std::string& name, const Wanted& wanted) {
  const std::lock_guard lock(mutex_);
  const auto it = beside_.find(name);
  if (it != beside_.end()) return {it->second};
  // One without a name is called by what it was loaded from: else two would answer to one name.
  const std::string of_default = default_->name();
  const bool is_default = of_default.empty() ? default_->is_called(name) : of_default == name;
  if (name.empty() || wanted.names_default || is_default) return {default_};
  if (wanted.is_to_be_loaded && default_->phase() == "no model") return {default_};
  auto slot = std::make_shared<ModelSlot>(drain_timeout_, on_unused_);
  if (stopping_) slot->refuse_new_work();
  return {beside_.emplace(name, std::move(slot)).first->second, true};
}

void ModelHost::forget(const ModelSlot& slot) {
  const std::lock_guard lock(mutex_);
  std::erase_if(beside_, [&](const auto& each) { return each.second.get() == &slot; });
}

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

int64_t ModelHost::promised_bytes(const ModelSlot& slot,
                                  std::span<const std::shared_ptr<ModelSlot>> giving_way) const {
  int64_t out = 0;
  for (const auto& [name, other] : all()) {
    const auto model = other->current();
    if (other.get() == &slot || model == nullptr) continue;
    if (std::ranges::find(giving_way, other) != giving_way.end()) continue;
    out += untouched_kv_bytes(model->status());
  }
  return out;
}

int64_t ModelHost::promised_bytes() const {
  int64_t out = 0;
  for (const auto& [name, slot] : all()) {
    for (const auto& model : slot->all_models()) out += untouched_kv_bytes(model->status());
  }
  return out;
}

std::shared_ptr<ServedModel> ModelHost::load(const ModelOptions& asked) {
  ModelOptions options = asked;
  const auto [slot, is_new] = place_of(options);
  const auto forget_new = [&, &slot = slot, is_new = is_new] {
    if (is_new) forget(*slot);
  };
  options.promised_bytes = promised_bytes(*slot);
  try {
    slot->load(options);
    return slot->current();
  } catch (const Error& error) {
    forget_new();
    const std::string others = describe_others(*slot);
    if (error.code() != Code::kOutOfMemory || others.empty()) throw;
    throw Error(Code::kOutOfMemory,
                fmt::format("{}; loaded beside it: {}, which go on; `tgi unload NAME` makes room",
                            error.what(), others));
  } catch (...) {
    forget_new();
    throw;
  }
}

void ModelHost::announce_load(const ModelOptions& options) {
  place_of(options).slot->announce_load(options);
}

void ModelHost::unload(const ModelName& name, bool keeps_name) {
  const std::shared_ptr<ModelSlot> slot = find_or_throw(name);
  if (keeps_name) return slot->set_aside();
  slot->unload();
  forget(*slot);
}

void ModelHost::refuse_new_work() {
  default_->refuse_new_work();
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& [name, slot] : beside_) slot->refuse_new_work();
}

}  // namespace tgi::daemon
