// Engine: which requests may run by their adapters, and adapters coming to the device and leaving.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/memory_plan.h"

namespace tgi {

int64_t Engine::adapter_bytes(const AdapterParts& parts) const {
  return workers_->adapter_bytes(parts);
}

void Engine::pin_adapter(std::shared_ptr<const HostAdapter> adapter,
                         std::function<void(const Error&)> on_failed) {
  send(Pin{std::move(adapter), std::move(on_failed)});
}

void Engine::unpin_adapter(int64_t adapter) {
  send(Unpin{adapter});
}

void Engine::forget_adapter(int64_t adapter, std::function<void()> on_gone) {
  send(Forget{adapter, std::move(on_gone)});
}

void Engine::require_adapters(const std::string& name) const {
  if (options_.adapters.max_active > 0) return;
  throw Error(Code::kAdapter,
              fmt::format("adapter {}: this model takes none: --adapter-memory-fraction or "
                          "--max-active-adapters is 0, or its backend has no kernels for them",
                          name));
}

void Engine::require_room(const HostAdapter& adapter) const {
  if (adapters_.can_ever_hold(adapter.id, adapter.device_bytes)) return;
  require_adapters(adapter.name);
  throw no_room_for(adapter);
}

Error Engine::no_room_for(const HostAdapter& adapter) const {
  if (!adapters_.has_place_beside_pinned()) {
    return {Code::kAdapter,
            fmt::format("adapter {}: pinned adapters have all {} places that there are; unpin one, "
                        "or give --max-active-adapters more",
                        adapter.name, options_.adapters.max_active)};
  }
  return {
      Code::kAdapter,
      fmt::format("adapter {}: it needs {} of memory, of the {} that adapters have ({} of them for "
                  "pinned ones); give --adapter-memory-fraction more",
                  adapter.name, format_bytes(adapter.device_bytes),
                  format_bytes(adapters_.memory_bytes()), format_bytes(adapters_.pinned_bytes()))};
}

// Runs, or waits for its adapter.
void Engine::admit(LiveRequest& live) {
  const std::shared_ptr<const HostAdapter>& adapter = live.request->adapter;
  if (adapter != nullptr) {
    require_room(*adapter);
    hosts_.try_emplace(adapter->id, adapter);
    const int32_t place =
        adapters_.enter(adapter->id, adapter->device_bytes, live.request->id, Clock::now());
    changed_adapters_.insert(adapter->id);
    if (place == 0) return;
    give_place(live, place);
  }
  for (const auto& sequence : live.sequences) scheduler_.add(*sequence);
}

void Engine::give_place(LiveRequest& live, int32_t place) {
  for (const auto& sequence : live.sequences) sequence->adapter_place = place;
}

void Engine::let_run(const std::vector<uint64_t>& requests, int32_t place) {
  for (const uint64_t id : requests) {
    LiveRequest& live = *live_.at(id);
    give_place(live, place);
    for (const auto& sequence : live.sequences) scheduler_.add(*sequence);
  }
}

void Engine::leave_adapter(const LiveRequest& live) {
  if (live.request->adapter == nullptr) return;
  adapters_.leave(live.request->adapter->id, live.request->id);
  changed_adapters_.insert(live.request->adapter->id);
}

void Engine::settle_adapters() {
  const auto now = Clock::now();
  while (true) {
    refuse_hopeless();
    const auto change = adapters_.next_change(now);
    if (!change) break;
    changed_adapters_.insert(change->adapter);
    switch (change->kind) {
      case AdapterPool::Kind::kLoad:
        on_device_[change->adapter].place = change->place;
        loader_->load(hosts_.at(change->adapter));
        break;
      case AdapterPool::Kind::kEvict:
        take_off_device(change->adapter, change->place);
        break;
      case AdapterPool::Kind::kYield:
        put_back_waiting(change->adapter);
        break;
    }
  }
  drop_left_adapters();
}

// Of those whose adapter found room when they came, and has none since others were pinned.
void Engine::refuse_hopeless() {
  for (const uint64_t id : adapters_.take_hopeless()) {
    LiveRequest& live = *live_.at(id);
    changed_adapters_.insert(live.request->adapter->id);
    fail_request(live, no_room_for(*live.request->adapter));
  }
}

void Engine::take_off_device(int64_t adapter, int32_t place) {
  changed_adapters_.insert(adapter);
  workers_->set_adapter(place, nullptr);
  // A step in flight may name it still.
  auto node = on_device_.extract(adapter);
  leaving_adapters_.push_back(
      {.step = last_submitted_, .adapter = std::move(node.mapped().adapter)});
}

// Requests of an adapter whose turn is over that have not begun wait for its next one.
void Engine::put_back_waiting(int64_t adapter) {
  for (const auto& [id, live] : live_) {
    if (live->request->adapter_id() != adapter) continue;
    const bool has_begun = std::ranges::any_of(live->sequences, [](const auto& sequence) {
      return sequence->slot >= 0 || sequence->finished || sequence->num_preemptions > 0;
    });
    if (has_begun || live->sequences.front()->adapter_place == 0) continue;
    for (const auto& sequence : live->sequences) TGI_CHECK(scheduler_.withdraw(*sequence));
    give_place(*live, 0);
    adapters_.put_back(adapter, id);
  }
}

void Engine::drop_left_adapters() {
  const auto is_free = [this](const LeavingAdapter& one) { return one.step <= last_retired_; };
  std::erase_if(forgotten_adapters_, [this](const Forget& one) {
    if (!has_gone(one.adapter)) return false;
    if (one.on_gone) one.on_gone();
    return true;
  });
  std::erase_if(leaving_adapters_, is_free);
}

// Of a forgotten adapter: when nobody uses it any more, all that is left of it goes.
bool Engine::has_gone(int64_t adapter) {
  if (const auto place = adapters_.evict(adapter)) take_off_device(adapter, *place);
  const AdapterPool::Standing standing = adapters_.standing(adapter);
  const bool is_used = standing.is_active || standing.is_loading || standing.num_waiting > 0;
  if (is_used || !kv_cache_.forget(adapter)) return false;
  hosts_.erase(adapter);
  changed_adapters_.insert(adapter);
  return true;
}

void Engine::handle(AdapterMade& command) {
  const int64_t id = command.adapter;
  changed_adapters_.insert(id);
  if (command.made.error != nullptr) {
    log_warn("adapter not loaded", {{"error", command.made.error->what()}});
    on_device_.erase(id);
    for (const uint64_t request : adapters_.load_failed(id)) {
      fail_request(*live_.at(request), *command.made.error);
    }
    const auto pin = pins_.extract(id);
    if (pin && pin.mapped()) pin.mapped()(*command.made.error);
    return;
  }
  OnDevice& entry = on_device_.at(id);
  entry.adapter = std::move(command.made.adapter);
  workers_->set_adapter(entry.place, entry.adapter.get());
  let_run(adapters_.loaded(id, Clock::now()), entry.place);
}

void Engine::handle(Pin& command) {
  try {
    require_room(*command.adapter);
  } catch (const Error& error) {
    log_warn("adapter not pinned", {{"error", error.what()}});
    if (command.on_failed) command.on_failed(error);
    return;
  }
  const int64_t id = command.adapter->id;
  pins_.insert_or_assign(id, std::move(command.on_failed));
  hosts_.try_emplace(id, command.adapter);
  const auto users = adapters_.pin(id, command.adapter->device_bytes);
  if (!users.empty()) let_run(users, on_device_.at(id).place);
  changed_adapters_.insert(id);
}

void Engine::handle(Unpin& command) {
  pins_.erase(command.adapter);
  adapters_.unpin(command.adapter);
  changed_adapters_.insert(command.adapter);
}

void Engine::handle(Forget& command) {
  pins_.erase(command.adapter);
  adapters_.unpin(command.adapter);
  changed_adapters_.insert(command.adapter);
  forgotten_adapters_.push_back(std::move(command));
}

// The engine ends, and so does all that is left of them.
void Engine::drop_forgotten() {
  for (const Forget& one : std::exchange(forgotten_adapters_, {})) {
    if (one.on_gone) one.on_gone();
  }
}

void Engine::publish_adapters() {
  if (changed_adapters_.empty()) return;
  const std::lock_guard lock(stats_mutex_);
  for (const int64_t id : changed_adapters_) {
    if (hosts_.contains(id)) {
      stats_.adapters.insert_or_assign(id, adapters_.standing(id));
    } else {
      stats_.adapters.erase(id);
    }
  }
  changed_adapters_.clear();
  stats_.adapter_bytes_used = adapters_.used_bytes();
  stats_.num_active_adapters = adapters_.num_active();
}

}  // namespace tgi
