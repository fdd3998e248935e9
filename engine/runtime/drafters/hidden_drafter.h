// Drafts with small heads that read what the last token was drawn from: one head after the other,
// each for all sequences at once, on a device of their own beside the model's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/backend.h"
#include "engine/draft/drafter.h"
#include "engine/runtime/drafters/drafter_kind.h"

namespace tgi {

inline constexpr int32_t kMostDraftHeads = 64;

// Each pass is one head over rows of sequences: row i of a pass goes on with row i of the one
// before. The step's tokens are the last of each text, drafts included.
class DraftHeads : public Forward {
 public:
  virtual int32_t num_heads() const = 0;
  // (max_running, hidden): what the rows of head 0 begin with.
  virtual Tensor input() const = 0;
  // Which head the next pass is.
  virtual void choose(int32_t head) = 0;
};

// What the state of its device takes; `max_cols`: the widest x of any matrix.
SlotLayout heads_slots(const DrafterSizes& sizes, int32_t vocab_size, int32_t max_cols);

// Belongs to the engine thread.
class HiddenDrafter final : public Drafter {
 public:
  // Heads that were made on `device`, whose state is taken here.
  HiddenDrafter(std::unique_ptr<Device> device,
                std::unique_ptr<DraftHeads> heads,
                const SlotLayout& slots);

  std::unique_ptr<Memory> start() override { return std::make_unique<Memory>(); }
  bool reads_hidden() const override { return true; }
  void draft(std::span<const Wanted> wanted) override;

 private:
  void run_head(int32_t head);

  const std::unique_ptr<Device> device_;
  const std::unique_ptr<DraftHeads> heads_;
  const int32_t max_rows_;
  bool slots_are_started_ = false;
  Batch batch_;
  std::vector<const Wanted*> rows_;  // of the pass; those that want most first
  std::vector<float> hidden_;        // what these begin with
  std::vector<uint16_t> rounded_;    // the same, where the device computes in 16 bits
};

}  // namespace tgi
