// Drafts with a smaller model of the same vocabulary, which has weights and a KV cache of its own:
// it reads each text as the model does and draws what follows, with the draws of the sequence
// itself, so that where both models agree on a distribution they draw the same token.
//
// A text is read in chunks beside the steps of the model; until that is done nothing is drafted for
// it. Drafts that were not drawn are overwritten. A sequence for which there is no block is left
// out, or takes those of one that has not drafted for longest.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"
#include "engine/runtime/drafters/draft_slots.h"
#include "engine/runtime/worker.h"

namespace tgi {

struct ModelDrafterOptions {
  int32_t num_slots = 0;
  int32_t max_batch_tokens = 0;  // token rows of a step
  int32_t max_total_tokens = 0;  // of a sequence
  int32_t num_blocks = 0;
  int32_t block_size = 16;
  KvGroups kv_groups{};
  int32_t vocab_size = 0;  // ids that can be read and drafted: of both models
};

// Belongs to the engine thread.
class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(std::unique_ptr<WorkerGroup> workers, const ModelDrafterOptions& options);
  ~ModelDrafter() override;

  std::unique_ptr<Memory> start() override;
  void draft(std::span<const Wanted> wanted) override;

 private:
  class Held;
  // A sequence of this call.
  struct Part {
    const Wanted* wanted = nullptr;
    Held* held = nullptr;
    int32_t num_rows = 0;  // of the step
    bool draws = false;
  };

  bool begin(const Wanted& wanted, Held& held);
  void add_rows(Part& part, int32_t num_rows);
  void run_step_of_parts();

  const ModelDrafterOptions options_;
  const std::unique_ptr<WorkerGroup> workers_;
  DraftSlots slots_;
  Batch batch_;
  std::vector<Part> parts_;
};

}  // namespace tgi
