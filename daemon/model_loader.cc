#include "daemon/model_loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/current_error.h"
#include "base/log.h"
#include "daemon/room_plan.h"

namespace tgi::daemon {
namespace {

using std::chrono::milliseconds;

Error stopping_error() {
  return {Code::kOverloaded, "the daemon is stopping and takes no new work"};
}

std::string shown(const ModelSlot& slot) {
  const std::string name = slot.name();
  if (!name.empty()) return name;
  const auto model = slot.current();
  return model == nullptr ? "the default model" : model->options().model;
}

}  // namespace

std::optional<ModelLease> ModelLoader::try_lease(const ModelName& name, KeepAlive keep_alive) {
  return models_.find_or_throw(name)->try_lease(keep_alive);
}

std::optional<ModelLease> ModelLoader::lease_or_wait(const ModelName& name,
                                                     KeepAlive keep_alive,
                                                     uint64_t waiter,
                                                     OnLease on_lease) {
  const std::shared_ptr<ModelSlot> slot = models_.find_or_throw(name);
  const std::lock_guard lock(mutex_);
  if (stopping_) throw stopping_error();
  // Under the lock: who gets none must not miss a load that ends just now.
  if (auto lease = slot->try_lease(keep_alive)) return lease;
  if (num_waiting_ >= options_.max_waiting) {
    throw Error(Code::kOverloaded,
                fmt::format("{} requests wait for models to be loaded, which is the most that may",
                            num_waiting_));
  }
  const auto known = std::ranges::find_if(queue_, [&](const LoadPtr& each) {
    return each->slot == slot && (each->stage != Stage::kQueued || !each->asked);
  });
  const LoadPtr load = known == queue_.end() ? std::make_shared<Load>(Load{.slot = slot}) : *known;
  load->waiters.push_back({waiter, keep_alive, std::move(on_lease)});
  ++num_waiting_;
  if (known == queue_.end()) queue_.push_back(load);
  begin_next();
  return std::nullopt;
}

void ModelLoader::leave(uint64_t waiter) {
  std::vector<Waiter> gone;  // what they hold ends without the lock
  const std::lock_guard lock(mutex_);
  for (const LoadPtr& load : queue_) {
    const auto it = std::ranges::find(load->waiters, waiter, &Waiter::id);
    if (it == load->waiters.end()) continue;
    gone.push_back(std::move(*it));
    load->waiters.erase(it);
    --num_waiting_;
  }
}

void ModelLoader::load(const ModelOptions& options,
                       const ModelTerms& terms,
                       OnEnd on_end,
                       bool names_default) {
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) {
      queue_.push_back(std::make_shared<Load>(Load{.asked = options,
                                                   .terms = terms,
                                                   .names_default = names_default,
                                                   .on_end = std::move(on_end)}));
      begin_next();
      return;
    }
  }
  const Error error = stopping_error();
  if (on_end) on_end(nullptr, &error);
}

void ModelLoader::unload(const ModelName& name, bool keeps_name) {
  const std::shared_ptr<ModelSlot> slot = models_.find_or_throw(name);
  if (slot->phase() == "no model") throw Error(Code::kNotFound, "no model is loaded");
  const std::string shown_name = shown(*slot);
  models_.unload(name, keeps_name);
  if (keeps_name) return;
  std::vector<Waiter> waiters;
  std::vector<OnEnd> ends;
  {
    const std::lock_guard lock(mutex_);
    for (const LoadPtr& load : queue_) {
      if (load->slot != slot) continue;
      std::ranges::move(std::exchange(load->waiters, {}), std::back_inserter(waiters));
      load->asked.reset();
      if (load->on_end) ends.push_back(std::exchange(load->on_end, {}));
    }
    num_waiting_ -= waiters.size();
  }
  const Error error(Code::kNotFound, fmt::format("{} was unloaded meanwhile", shown_name));
  for (const Waiter& each : waiters) each.on_lease(nullptr, &error);
  for (const OnEnd& each : ends) each(nullptr, &error);
}

// REQUIRES: the lock is held, as for those below that say so.
void ModelLoader::begin_next() {
  if (stopping_ || queue_.empty() || queue_.front()->stage != Stage::kQueued) return;
  queue_.front()->stage = Stage::kRunning;
  post(queue_.front(), &ModelLoader::plan);
}

void ModelLoader::post(const LoadPtr& load, void (ModelLoader::*work)(const LoadPtr&)) {
  const auto run = [this, load, work] {
    try {
      (this->*work)(load);
    } catch (const Error& error) {
      fail(load, error);
    } catch (const std::bad_alloc&) {
      fail(load, Error(Code::kOutOfMemory, "the daemon has no memory left for this model"));
    } catch (...) {
      fail(load, current_error());
    }
  };
  // Dropped only when stop() was called, and never under the lock: nothing is posted after that.
  loads_.post(run, [this, load] { fail(load, stopping_error()); });
}

bool ModelLoader::is_wanted(const LoadPtr& load) const {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw stopping_error();
  return load->is_wanted();
}

void ModelLoader::plan(const LoadPtr& load) {
  if (load->asked) {
    const ModelHost::Place place = models_.place_of(*load->asked, load->names_default);
    const std::lock_guard lock(mutex_);
    load->slot = place.slot;
    load->is_new = place.is_new;
  }
  ModelSlot& slot = *load->slot;
  // All have left; or it was loaded by somebody else, or stayed after all.
  const bool is_there = !load->asked && slot.phase() == "ready";
  if (!is_wanted(load) || is_there) return end(load);
  std::optional<ModelOptions> options = load->asked ? load->asked : slot.enrolled();
  if (!options) {
    throw Error(Code::kNotFound, fmt::format("{} was unloaded meanwhile", shown(slot)));
  }
  if (load->asked && slot.current() == nullptr) slot.announce_load(*options);
  load->prepared = prepare_model(*options);
  if (load->asked && fits_beside(models_, slot, *load->prepared)) {
    log_info("a model is replaced, and goes when its requests have ended",
             {{"name", options->name}, {"by", options->model}});
    slot.load_beside(*options, std::move(load->prepared));
    slot.set_terms(load->terms);
    return end(load);
  }
  load->giving_way = plan_room(models_, slot, *load->prepared, options_.max_models);
  std::vector<std::string> names;
  for (const auto& each : load->giving_way) {
    each->begin_giving_way();
    names.push_back(shown(*each));
  }
  if (!names.empty()) {
    log_info("models give way", {{"to", options->model},
                                 {"name", options->name},
                                 {"models", fmt::format("{}", fmt::join(names, ", "))}});
  }
  if (load->asked && slot.current() != nullptr && !slot.is_unused()) {
    log_info("there is no room for both: the old model's requests end first, new ones wait",
             {{"name", options->name}, {"by", options->model}});
    slot.begin_giving_way();
    load->giving_way.push_back(load->slot);
    load->waits_for_own = true;
  }
  if (!std::ranges::all_of(load->giving_way, [](const auto& each) { return each->is_unused(); })) {
    if (slot.current() == nullptr) {
      slot.announce_load(*options);
      slot.set_phase_detail(fmt::format("{}, when the requests of {} have ended", options->model,
                                        fmt::join(names, ", ")));
    }
    const std::lock_guard lock(mutex_);
    load->stage = Stage::kMakingRoom;
    return;
  }
  make_room_and_load(load);
}

void ModelLoader::make_room_and_load(const LoadPtr& load) {
  ModelSlot& slot = *load->slot;
  if (!is_wanted(load)) {
    if (!load->asked && slot.current() == nullptr) {
      if (const auto enrolled = slot.enrolled()) slot.enroll(*enrolled, slot.standing().terms);
    }
    return end(load);
  }
  if (load->waits_for_own) load->giving_way.pop_back();
  for (const auto& each : load->giving_way) each->set_aside();
  load->giving_way.clear();
  const ModelOptions options = load->prepared->options;
  if (load->asked) slot.set_terms(load->terms);
  slot.load(options, std::move(load->prepared));
  end(load);
}

// Hands out the model, where there is one, before anything else may take it away.
void ModelLoader::end(const LoadPtr& load) {
  for (const auto& each : load->giving_way) each->stay();
  std::vector<std::pair<OnLease, ModelLease>> leased;
  std::vector<std::pair<OnLease, Error>> refused;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Waiter> late;  // came when it was given up for want of anybody who waits
    num_waiting_ -= load->waiters.size();
    for (Waiter& each : std::exchange(load->waiters, {})) {
      try {
        if (auto lease = load->slot->try_lease(each.keep_alive)) {
          leased.emplace_back(std::move(each.on_lease), std::move(*lease));
        } else {
          late.push_back(std::move(each));
        }
      } catch (const Error& error) {
        refused.emplace_back(std::move(each.on_lease), error);
      }
    }
    if (!late.empty()) {
      num_waiting_ += late.size();
      queue_.push_back(
          std::make_shared<Load>(Load{.slot = load->slot, .waiters = std::move(late)}));
    }
    remove(load);
  }
  for (auto& [on_lease, lease] : leased) on_lease(&lease, nullptr);
  for (const auto& [on_lease, error] : refused) on_lease(nullptr, &error);
  if (load->on_end) std::exchange(load->on_end, {})(load->slot->current(), nullptr);
}

void ModelLoader::fail(const LoadPtr& load, const Error& error) {
  for (const auto& each : load->giving_way) each->stay();
  std::vector<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    waiters = std::exchange(load->waiters, {});
    num_waiting_ -= waiters.size();
    remove(load);
  }
  if (load->slot != nullptr && load->slot->current() == nullptr) {
    if (load->is_new) {
      models_.forget(*load->slot);
    } else {
      load->slot->set_failed(error.what());
    }
  }
  bool is_stopping = false;
  {
    const std::lock_guard lock(mutex_);
    is_stopping = stopping_;
  }
  if (!is_stopping) {
    log_error("the model can't be loaded",
              {{"name", load->slot == nullptr ? std::string() : load->slot->name()},
               {"waiting", waiters.size()},
               {"error", error.what()}});
  }
  if (load->on_end) std::exchange(load->on_end, {})(nullptr, &error);
  for (const Waiter& each : waiters) each.on_lease(nullptr, &error);
}

// REQUIRES: the lock is held.
void ModelLoader::remove(const LoadPtr& load) {
  std::erase(queue_, load);
  begin_next();
}

void ModelLoader::drop_ended(const std::shared_ptr<ModelSlot>& slot) {
  for (std::shared_ptr<ServedModel>& model : slot->take_ended()) {
    const std::string path = model->options().model;
    // It goes here, not with a handler that holds it for a moment longer.
    const std::weak_ptr<ServedModel> watch = model;
    model.reset();
    while (!watch.expired()) std::this_thread::sleep_for(milliseconds(1));
    log_info("a model that was replaced is gone", {{"model", path}, {"name", slot->name()}});
  }
  const std::lock_guard lock(mutex_);
  std::erase(expiring_, slot.get());
}

void ModelLoader::expire(const std::shared_ptr<ModelSlot>& slot) {
  try {
    if (slot->begin_to_expire(std::chrono::steady_clock::now())) slot->set_aside();
  } catch (const Error& error) {
    slot->stay();
    log_warn("a model whose time is over stays", {{"error", error.what()}});
  }
  const std::lock_guard lock(mutex_);
  std::erase(expiring_, slot.get());
}

std::optional<milliseconds> ModelLoader::look(std::chrono::steady_clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return std::nullopt;
    if (!queue_.empty() && queue_.front()->stage == Stage::kMakingRoom) {
      const LoadPtr& load = queue_.front();
      const bool is_unused =
          std::ranges::all_of(load->giving_way, [](const auto& each) { return each->is_unused(); });
      if (is_unused || !load->is_wanted()) {
        load->stage = Stage::kRunning;
        post(load, &ModelLoader::make_room_and_load);
      }
    }
  }
  return look_for_expired(now);
}

std::optional<milliseconds> ModelLoader::look_for_expired(
    std::chrono::steady_clock::time_point now) {
  std::optional<milliseconds> next;
  for (const auto& [name, slot] : models_.all()) {
    const auto at = slot->expires_at();
    const bool has_ended = slot->has_ended();
    const bool is_over = at && *at <= now;
    if (has_ended || is_over) {
      const std::lock_guard lock(mutex_);
      if (stopping_ || std::ranges::find(expiring_, slot.get()) != expiring_.end()) continue;
      expiring_.push_back(slot.get());
      loads_.post([this, has_ended, slot = slot] { has_ended ? drop_ended(slot) : expire(slot); });
    }
    if (!at || is_over) continue;
    const auto left = std::chrono::ceil<milliseconds>(*at - now);
    next = std::min(next.value_or(left), left);
  }
  return next;
}

void ModelLoader::stop() {
  std::vector<Waiter> waiters;
  std::vector<OnEnd> ends;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const LoadPtr& load : queue_) {
      std::ranges::move(std::exchange(load->waiters, {}), std::back_inserter(waiters));
      // One that runs ends soon, and tells by itself.
      const bool is_running = load->stage == Stage::kRunning;
      if (load->on_end && !is_running) ends.push_back(std::exchange(load->on_end, {}));
    }
    num_waiting_ = 0;
  }
  const Error error = stopping_error();
  for (const Waiter& each : waiters) each.on_lease(nullptr, &error);
  for (const OnEnd& each : ends) each(nullptr, &error);
}

int64_t ModelLoader::num_waiting(const ModelSlot& slot) const {
  const std::lock_guard lock(mutex_);
  int64_t out = 0;
  for (const LoadPtr& load : queue_) {
    if (load->slot.get() == &slot) out += static_cast<int64_t>(load->waiters.size());
  }
  return out;
}

}  // namespace tgi::daemon
