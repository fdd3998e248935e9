// See adapter_pool.h.
#include "engine/sched/adapter_pool.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"

namespace tgi {

AdapterPool::AdapterPool(const AdapterPoolOptions& options) : options_(options) {
  for (int32_t place = options.max_active; place >= 1; --place) free_places_.push_back(place);
}

bool AdapterPool::can_ever_hold(int64_t adapter, int64_t bytes) const {
  const auto it = entries_.find(adapter);
  if (it != entries_.end() && it->second.is_pinned) return true;
  return has_place_beside_pinned() && bytes <= options_.memory_bytes - pinned_bytes_;
}

void AdapterPool::want(int64_t adapter, Entry& entry) {
  if (entry.state != State::kAbsent) return;
  entry.state = State::kPending;
  pending_.push_back(adapter);
}

int32_t AdapterPool::enter(int64_t adapter, int64_t bytes, uint64_t user, Clock::time_point now) {
  Entry& entry = entries_[adapter];
  entry.bytes = bytes;
  entry.last_used = now;
  if (entry.state == State::kActive && !entry.is_yielding) {
    entry.running.insert(user);
    return entry.place;
  }
  entry.waiting.push_back(user);
  want(adapter, entry);
  return 0;
}

void AdapterPool::leave(int64_t adapter, uint64_t user) {
  const auto it = entries_.find(adapter);
  if (it == entries_.end()) return;
  Entry& entry = it->second;
  if (entry.running.erase(user) == 0) std::erase(entry.waiting, user);
  forget_if_unused(adapter);
}

// Of an adapter without a place that nobody wants nothing is kept.
void AdapterPool::forget_if_unused(int64_t adapter) {
  const auto it = entries_.find(adapter);
  Entry& entry = it->second;
  if (!entry.waiting.empty() || entry.is_pinned) return;
  if (entry.state == State::kPending) {
    std::erase(pending_, adapter);
    entry.state = State::kAbsent;
  }
  if (entry.state == State::kAbsent) entries_.erase(it);
}

void AdapterPool::put_back(int64_t adapter, uint64_t user) {
  Entry& entry = entries_.at(adapter);
  TGI_CHECK(entry.is_yielding);
  if (entry.running.erase(user) > 0) entry.waiting.push_back(user);
}

bool AdapterPool::is_yielding(int64_t adapter) const {
  const auto it = entries_.find(adapter);
  return it != entries_.end() && it->second.is_yielding;
}

std::vector<uint64_t> AdapterPool::pin(int64_t adapter, int64_t bytes) {
  Entry& entry = entries_[adapter];
  if (entry.is_pinned) return {};
  entry.bytes = bytes;
  entry.is_pinned = true;
  pinned_bytes_ += bytes;
  ++num_pinned_;
  want(adapter, entry);
  if (entry.state != State::kActive) return {};
  entry.is_yielding = false;
  return let_run(entry);
}

// All that wait.
std::vector<uint64_t> AdapterPool::let_run(Entry& entry) {
  std::vector<uint64_t> users(entry.waiting.begin(), entry.waiting.end());
  entry.waiting.clear();
  entry.running.insert(users.begin(), users.end());
  return users;
}

void AdapterPool::unpin(int64_t adapter) {
  const auto it = entries_.find(adapter);
  if (it == entries_.end() || !it->second.is_pinned) return;
  it->second.is_pinned = false;
  pinned_bytes_ -= it->second.bytes;
  --num_pinned_;
  forget_if_unused(adapter);
}

void AdapterPool::give_up_place(Entry& entry) {
  used_bytes_ -= entry.bytes;
  --num_active_;
  free_places_.push_back(entry.place);
  entry.place = 0;
  entry.is_yielding = false;
  entry.state = State::kAbsent;
}

AdapterPool::Entries::iterator AdapterPool::least_recently_used() {
  auto best = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Entry& entry = it->second;
    const bool is_idle = entry.state == State::kActive && entry.running.empty() && !entry.is_pinned;
    if (!is_idle) continue;
    if (best == entries_.end() || entry.last_used < best->second.last_used) best = it;
  }
  return best;
}

AdapterPool::Entries::iterator AdapterPool::longest_active(Clock::time_point now) {
  auto best = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Entry& entry = it->second;
    if (entry.state != State::kActive || entry.is_pinned || entry.is_yielding) continue;
    if (now - entry.active_since < options_.cycle_time) continue;
    if (best == entries_.end() || entry.active_since < best->second.active_since) best = it;
  }
  return best;
}

// Whether there is room for `bytes` once those whose turn is over have left.
bool AdapterPool::yielding_ones_suffice(int64_t bytes) const {
  int64_t room = options_.memory_bytes - used_bytes_;
  bool has_place = !free_places_.empty();
  for (const auto& [adapter, entry] : entries_) {
    if (!entry.is_yielding) continue;
    room += entry.bytes;
    has_place = true;
  }
  return has_place && bytes <= room;
}

std::optional<AdapterPool::Change> AdapterPool::next_change(Clock::time_point now) {
  if (pending_.empty()) return std::nullopt;
  const int64_t first = pending_.front();
  Entry& wanted = entries_.at(first);
  if (!free_places_.empty() && used_bytes_ + wanted.bytes <= options_.memory_bytes) {
    pending_.pop_front();
    wanted.state = State::kLoading;
    wanted.place = free_places_.back();
    free_places_.pop_back();
    used_bytes_ += wanted.bytes;
    ++num_active_;
    return Change{.kind = Kind::kLoad, .adapter = first, .place = wanted.place};
  }
  if (const auto it = least_recently_used(); it != entries_.end()) {
    const int64_t adapter = it->first;
    return Change{.kind = Kind::kEvict, .adapter = adapter, .place = evict(adapter).value()};
  }
  if (yielding_ones_suffice(wanted.bytes)) return std::nullopt;
  const auto it = longest_active(now);
  if (it == entries_.end()) return std::nullopt;
  it->second.is_yielding = true;
  return Change{.kind = Kind::kYield, .adapter = it->first, .place = it->second.place};
}

std::optional<int32_t> AdapterPool::evict(int64_t adapter) {
  const auto it = entries_.find(adapter);
  if (it == entries_.end() || it->second.state != State::kActive) return std::nullopt;
  Entry& entry = it->second;
  if (!entry.running.empty() || entry.is_pinned) return std::nullopt;
  const int32_t place = entry.place;
  give_up_place(entry);
  if (!entry.waiting.empty()) want(adapter, entry);
  forget_if_unused(adapter);
  return place;
}

std::vector<uint64_t> AdapterPool::loaded(int64_t adapter, Clock::time_point now) {
  Entry& entry = entries_.at(adapter);
  TGI_CHECK(entry.state == State::kLoading);
  entry.state = State::kActive;
  entry.active_since = now;
  entry.last_used = now;
  return let_run(entry);
}

std::vector<uint64_t> AdapterPool::take_hopeless() {
  std::vector<uint64_t> users;
  if (num_pinned_ == 0) return users;
  std::vector<int64_t> hopeless;
  std::ranges::copy_if(pending_, std::back_inserter(hopeless), [this](int64_t adapter) {
    return !can_ever_hold(adapter, entries_.at(adapter).bytes);
  });
  for (const int64_t adapter : hopeless) {
    Entry& entry = entries_.at(adapter);
    users.insert(users.end(), entry.waiting.begin(), entry.waiting.end());
    entry.waiting.clear();
    forget_if_unused(adapter);
  }
  return users;
}

std::vector<uint64_t> AdapterPool::load_failed(int64_t adapter) {
  Entry& entry = entries_.at(adapter);
  TGI_CHECK(entry.state == State::kLoading);
  give_up_place(entry);
  std::vector<uint64_t> users(entry.waiting.begin(), entry.waiting.end());
  entry.waiting.clear();
  unpin(adapter);
  if (entries_.contains(adapter)) forget_if_unused(adapter);
  return users;
}

AdapterPool::Standing AdapterPool::standing(int64_t adapter) const {
  const auto it = entries_.find(adapter);
  if (it == entries_.end()) return {};
  const Entry& entry = it->second;
  return {.is_active = entry.state == State::kActive,
          .is_loading = entry.state == State::kLoading,
          .is_pinned = entry.is_pinned,
          .num_running = static_cast<int64_t>(entry.running.size()),
          .num_waiting = static_cast<int64_t>(entry.waiting.size())};
}

void AdapterPool::check_integrity() const {
  int64_t used = 0;
  int64_t pinned = 0;
  int32_t num_pinned = 0;
  std::set<int32_t> places(free_places_.begin(), free_places_.end());
  TGI_CHECK(places.size() == free_places_.size());
  size_t num_pending = 0;
  for (const auto& [adapter, entry] : entries_) {
    const bool has_place = entry.state == State::kActive || entry.state == State::kLoading;
    if (has_place) {
      used += entry.bytes;
      TGI_CHECK(places.insert(entry.place).second);
    }
    TGI_CHECK(has_place == (entry.place != 0));
    TGI_CHECK(entry.running.empty() || entry.state == State::kActive);
    TGI_CHECK(!entry.is_yielding || entry.state == State::kActive);
    TGI_CHECK(entry.waiting.empty() || entry.state != State::kActive || entry.is_yielding);
    if (entry.state == State::kPending) {
      ++num_pending;
      TGI_CHECK(std::ranges::count(pending_, adapter) == 1);
    }
    TGI_CHECK(entry.state != State::kAbsent);
    if (!entry.is_pinned) continue;
    pinned += entry.bytes;
    ++num_pinned;
  }
  TGI_CHECK(num_pending == pending_.size());
  TGI_CHECK(used == used_bytes_ && used <= options_.memory_bytes);
  TGI_CHECK(pinned == pinned_bytes_ && num_pinned == num_pinned_);
  TGI_CHECK(static_cast<int32_t>(places.size()) == options_.max_active);
  TGI_CHECK(num_active_ + static_cast<int32_t>(free_places_.size()) == options_.max_active);
}

}  // namespace tgi
