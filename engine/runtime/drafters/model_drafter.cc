#include "engine/runtime/drafters/model_drafter.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"

namespace tgi {
// What is kept of a sequence: the tokens whose keys and values are in its blocks.
class ModelDrafter::Held final : public DraftSlots::Hold {
 public:
  using Hold::Hold;
  std::vector<int32_t> ids;
  int32_t num_known = 0;  // of ids: those that the text begins with, whatever it becomes
};

ModelDrafter::ModelDrafter(std::unique_ptr<WorkerGroup> workers, const ModelDrafterOptions& options)
    : options_(options),
      workers_(std::move(workers)),
      slots_(options.num_slots, options.num_blocks, options.block_size, options.kv_groups) {}

ModelDrafter::~ModelDrafter() = default;

std::unique_ptr<Drafter::Memory> ModelDrafter::start() {
  return std::make_unique<Held>(slots_);
}

// False: nothing can be drafted for it now.
bool ModelDrafter::begin(const Wanted& wanted, Held& held) {
  const auto size = static_cast<int32_t>(wanted.token_ids.size());
  if (wanted.max_tokens <= 0 || size == 0) return false;
  if (size + wanted.max_tokens > options_.max_total_tokens) return false;
  if (!held.has_slot()) {
    held.ids.clear();
    held.num_known = 0;
  }
  // From where it may differ: of the drafts some were not drawn.
  const auto from = static_cast<ptrdiff_t>(std::min(held.num_known, size));
  const auto is_new = [&](int32_t id) { return id >= options_.vocab_size; };
  if (std::any_of(wanted.token_ids.begin() + from, wanted.token_ids.end(), is_new)) return false;
  if (!slots_.take(held)) return false;
  const auto differs = std::mismatch(
      held.ids.begin() + std::min(from, std::ssize(held.ids)), held.ids.end(),
      wanted.token_ids.begin() + std::min(from, std::ssize(held.ids)), wanted.token_ids.end());
  held.ids.erase(differs.first, held.ids.end());
  // The last is computed, if once more: something is to be drawn from it.
  held.ids.resize(std::min(held.ids.size(), wanted.token_ids.size() - 1));
  held.num_known = static_cast<int32_t>(held.ids.size());
  slots_.leave_window(held, held.num_known);
  return slots_.grow(held, size + wanted.max_tokens - 1);
}

// The next of its text and drafts.
void ModelDrafter::add_rows(Part& part, int32_t num_rows) {
  Held& held = *part.held;
  const std::span<const int32_t> text = part.wanted->token_ids;
  const std::vector<int32_t>& drafts = *part.wanted->draft_ids;
  part.num_rows = num_rows;
  slots_.announce(held, part.wanted->sampling, batch_);
  for (int32_t i = 0; i < num_rows; ++i) {
    const size_t at = held.ids.size();
    const int32_t id = at < text.size() ? text[at] : drafts[at - text.size()];
    batch_.positions.push_back(static_cast<int32_t>(at));
    batch_.token_ids.push_back(id);
    held.ids.push_back(id);
  }
  batch_.slots.push_back(held.slot());
  batch_.cu_seqlens_q.push_back(batch_.num_tokens());
  batch_.context_lens.push_back(static_cast<int32_t>(held.ids.size()));
  part.draws = held.ids.size() == text.size() + drafts.size();
  if (!part.draws) return;
  batch_.sample_rows.push_back({.row = batch_.num_tokens() - 1,
                                .slot = held.slot(),
                                .position = static_cast<int32_t>(held.ids.size())});
}

void ModelDrafter::run_step_of_parts() {
  const StepResult& result = run_step(*workers_, batch_);
  size_t next = 0;
  for (Part& part : parts_) {
    if (part.num_rows == 0 || !part.draws) continue;
    const int32_t id = result.sampled[next++].token.id;
    part.draws = id < options_.vocab_size;
    if (part.draws) part.wanted->draft_ids->push_back(id);
  }
  std::erase_if(parts_, [](const Part& part) {
    return part.num_rows == 0 || !part.draws ||
           std::ssize(*part.wanted->draft_ids) >= part.wanted->max_tokens;
  });
}

void ModelDrafter::draft(std::span<const Wanted> wanted) {
  slots_.begin_turn();
  parts_.clear();
  for (const Wanted& each : wanted) {
    each.draft_ids->clear();
    auto* const held = static_cast<Held*>(each.memory);
    if (begin(each, *held)) parts_.push_back({.wanted = &each, .held = held});
  }
  // First what of the texts was not read yet, then a token of each at a time.
  while (!parts_.empty()) {
    batch_.clear();
    int32_t budget = options_.max_batch_tokens;
    for (Part& part : parts_) {
      const size_t all = part.wanted->token_ids.size() + part.wanted->draft_ids->size();
      const auto unread = static_cast<int32_t>(all - part.held->ids.size());
      part.num_rows = 0;
      if (budget > 0) add_rows(part, std::min(unread, budget));
      budget -= part.num_rows;
    }
    run_step_of_parts();
  }
}

}  // namespace tgi
