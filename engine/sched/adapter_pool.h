// Which adapters are on the device, and which comes next: fixed memory, a fixed number of places,
// the least recently used leaves when another one is wanted, and where all are in use each has its
// turn. Pure policy: no device, no files, no clock of its own. Belongs to the engine thread.
//
// A user is a request. It enters, and either may run at once or waits until its adapter was loaded;
// it leaves when it is done or gone. An adapter in use is never evicted. One that has had its turn
// while another one waits for its place takes no new users: they wait for its next turn.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/sched/request.h"

namespace tgi {

struct AdapterPoolOptions {
  int64_t memory_bytes = 0;
  int32_t max_active = 0;  // places, numbered from 1
  Clock::duration cycle_time = std::chrono::seconds(2);
};

class AdapterPool {
 public:
  explicit AdapterPool(const AdapterPoolOptions& options);

  // The place of the adapter, whose user this is until leave; 0: the user waits. REQUIRES:
  // can_ever_hold(adapter, bytes).
  [[nodiscard]] int32_t enter(int64_t adapter, int64_t bytes, uint64_t user, Clock::time_point now);
  void leave(int64_t adapter, uint64_t user);

  // A user that may run and has not begun waits after all. REQUIRES: is_yielding(adapter).
  void put_back(int64_t adapter, uint64_t user);
  bool is_yielding(int64_t adapter) const;

  // Kept on the device although nobody uses it; loaded if it is not there. Those that waited for
  // its next turn may run now. REQUIRES: can_ever_hold(adapter, bytes).
  [[nodiscard]] std::vector<uint64_t> pin(int64_t adapter, int64_t bytes);
  void unpin(int64_t adapter);

  // Whether there is room for it beside those that are pinned, of which it may be one.
  bool can_ever_hold(int64_t adapter, int64_t bytes) const;
  bool has_place_beside_pinned() const { return options_.max_active > num_pinned_; }

  // Users that wait for what can't ever be held since another one was pinned; they are users no
  // longer.
  std::vector<uint64_t> take_hopeless();

  int64_t memory_bytes() const { return options_.memory_bytes; }
  int64_t pinned_bytes() const { return pinned_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }
  int32_t num_active() const { return num_active_; }

  enum class Kind : uint8_t {
    kLoad,   // have it made for `place`, then say loaded or load_failed
    kEvict,  // it leaves `place`
    kYield,  // its turn is over: users of it that have not begun may be put back
  };
  struct Change {
    Kind kind;
    int64_t adapter;
    int32_t place;
  };
  // What is to be done now, one at a time until there is nothing. It counts as done.
  std::optional<Change> next_change(Clock::time_point now);

  // Takes one that is on the device and not in use off it; its place. Nothing: it is not, or is in
  // use.
  std::optional<int32_t> evict(int64_t adapter);

  // Those that waited may run now, at `place` of the load.
  std::vector<uint64_t> loaded(int64_t adapter, Clock::time_point now);
  // Those that waited; they are users no longer, and neither is it pinned.
  std::vector<uint64_t> load_failed(int64_t adapter);

  // How it stands with one of them.
  struct Standing {
    bool is_active = false;
    bool is_loading = false;
    bool is_pinned = false;
    int64_t num_running = 0;
    int64_t num_waiting = 0;
  };
  Standing standing(int64_t adapter) const;

  void check_integrity() const;

 private:
  enum class State : uint8_t { kAbsent, kPending, kLoading, kActive };
  struct Entry {
    int64_t bytes = 0;
    State state = State::kAbsent;
    int32_t place = 0;
    bool is_pinned = false;
    bool is_yielding = false;
    Clock::time_point active_since{};
    Clock::time_point last_used{};
    std::unordered_set<uint64_t> running;
    std::deque<uint64_t> waiting;
  };
  using Entries = std::unordered_map<int64_t, Entry>;

  void want(int64_t adapter, Entry& entry);
  static std::vector<uint64_t> let_run(Entry& entry);
  void give_up_place(Entry& entry);
  void forget_if_unused(int64_t adapter);
  Entries::iterator least_recently_used();
  Entries::iterator longest_active(Clock::time_point now);
  bool yielding_ones_suffice(int64_t bytes) const;

  const AdapterPoolOptions options_;
  Entries entries_;
  std::deque<int64_t> pending_;  // adapters without a place that are wanted, the first in front
  std::vector<int32_t> free_places_;
  int64_t used_bytes_ = 0;  // of what is loaded or being loaded
  int32_t num_active_ = 0;  // likewise
  int64_t pinned_bytes_ = 0;
  int32_t num_pinned_ = 0;
};

}  // namespace tgi
