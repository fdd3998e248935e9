// Slots of a drafter's device and blocks of its KV cache, which texts hold between their drafts.
// Where there are none left, a text takes those of the one that has gone without for longest, whose
// hold then is empty.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/draft/drafter.h"
#include "engine/sched/kv_cache.h"
#include "engine/tensor/batch.h"

namespace tgi {

// What can be drawn without knowing the counts of an answer's tokens: those would have to be taken
// back with each wrong draft. Null: the likeliest is drawn.
SamplingParams draws_of(const SamplingParams* sampling);

// Belongs to the engine thread.
class DraftSlots {
 public:
  // One text's. Must not outlive the slots.
  class Hold : public Drafter::Memory {
   public:
    explicit Hold(DraftSlots& owner) : owner_(owner) {}
    ~Hold() override { owner_.drop(*this); }
    // Else there is nothing in any block.
    bool has_slot() const { return slot_ >= 0; }
    int32_t slot() const { return slot_; }

   private:
    friend class DraftSlots;

    DraftSlots& owner_;
    KvLease lease_;
    int32_t slot_ = -1;
    int32_t num_slot_places_ = 0;  // of the lease, known to the device's block tables
    bool is_started_ = false;      // the device knows whose slot it is
    uint64_t last_turn_ = 0;
  };

  DraftSlots(int32_t num_slots, int32_t num_blocks, int32_t block_size, const KvGroups& groups);
  ~DraftSlots();

  // Those that take from now on do not lose what they hold until the next turn.
  void begin_turn() { ++turn_; }
  // False: all are held by those of this turn.
  bool take(Hold& hold);
  // Blocks for so many tokens; false: there are not enough.
  bool grow(Hold& hold, int32_t num_tokens);
  void drop(Hold& hold);
  // Those before the window of what follows `num_tokens` are given back.
  void leave_window(Hold& hold, int32_t num_tokens);
  // Tells the device of the slot and of blocks that it does not know yet.
  void announce(Hold& hold, const SamplingParams* sampling, Batch& batch);

 private:
  Hold* longest_unused() const;

  KvCache kv_cache_;
  std::vector<int32_t> free_slots_;
  std::vector<Hold*> holders_;  // of slots
  uint64_t turn_ = 0;
};

}  // namespace tgi
