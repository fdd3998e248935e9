// Drafts with a layer that reads the model's hidden states of all of a text, beside the token that
// followed each: one pass over what a step has computed, then one for each further draft, in which
// it reads what it gave itself. It has a KV cache of its own, on a device of its own beside the
// model's.
//
// Row i of a text is the hidden state at some token and the token behind that. A text begins with
// the first row that is shown: of a prefix from the model's cache there are none, so that the layer
// sees less of such a text than of others, and its drafts may be worse. The same holds for a text
// whose blocks others needed more.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/backend.h"
#include "engine/draft/drafter.h"
#include "engine/runtime/drafters/draft_slots.h"
#include "engine/runtime/drafters/drafter_kind.h"

namespace tgi {

// A pass is over rows of texts, which are the step's tokens; it reports (Device::pool) what the
// rows that are drawn from become, for the pass that goes on from them.
class DraftLayer : public Forward {
 public:
  // What the rows of the next pass are, of its Device in the type that it computes in, one right
  // behind the other: (max_batch_tokens, cols) as the model reports them, or (max_batch_tokens,
  // hidden) as a pass has.
  virtual Tensor reported_rows() const = 0;
  virtual Tensor own_rows() const = 0;
  virtual void choose(bool is_own) = 0;
  // Of the model's vocabulary, for what was drawn.
  virtual int32_t token_of(int32_t drawn) const { return drawn; }
};

struct RowDrafterOptions {
  int32_t num_slots = 0;
  int32_t max_batch_tokens = 0;  // rows of a pass
  int32_t max_total_tokens = 0;  // of a sequence
  int32_t num_blocks = 0;
  int32_t block_size = 16;
  KvGroups kv_groups{};
};

// Rows of a text that are kept until there is a reason to read them: a draft, or more of them. As
// many texts have such rows at most as there are slots.
inline constexpr int32_t kMostWaitingRows = 16;

// Belongs to the engine thread.
class RowDrafter final : public Drafter {
 public:
  // A layer that was made on `device`, whose state is taken.
  RowDrafter(std::unique_ptr<Device> device,
             std::unique_ptr<DraftLayer> layer,
             const RowDrafterOptions& options);
  ~RowDrafter() override;

  std::unique_ptr<Memory> start() override;
  bool reads_rows() const override { return true; }
  void read(std::span<const Computed> computed) override;
  void draft(std::span<const Wanted> wanted) override;

 private:
  class Text;
  // A text in the passes of a call.
  struct Part {
    Text* text = nullptr;
    std::span<const int32_t> token_ids;
    std::span<const float> rows{};  // behind those that wait
    const SamplingParams* sampling = nullptr;
    std::vector<int32_t>* draft_ids = nullptr;  // null: nothing is drawn
    int32_t max_tokens = 0;
    int32_t at = 0;            // the next row
    int32_t num_left = 0;      // rows until something is drawn
    int32_t num_rows = 0;      // of the pass
    std::vector<float> own{};  // (hidden), what the last draft was drawn from
  };

  static void take_over(Text& text, const Computed& computed, int64_t cols);
  void forget_waiting();
  void run_parts(bool is_own);
  void add_rows(Part& part, bool is_own);
  const float* row_of(const Part& part, bool is_own) const;
  void take_drafts();

  const RowDrafterOptions options_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<DraftLayer> layer_;
  DraftSlots slots_;
  std::vector<Text*> texts_;  // all of them
  uint64_t num_reads_ = 0;
  Batch batch_;
  std::vector<Part> parts_;
  std::vector<float> rows_;        // of the pass, as they are sent next
  std::vector<uint16_t> rounded_;  // the same, where the device computes in 16 bits
};

}  // namespace tgi
