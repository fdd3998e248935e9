#include "engine/runtime/drafters/model_drafter.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"

namespace tgi {
namespace {

// What can be drawn without knowing the counts of an answer's tokens: those would have to be taken
// back with each wrong draft.
SamplingParams draws_of(const SamplingParams* sampling) {
  if (sampling == nullptr) return {};
  SamplingParams out = *sampling;
  out.repetition_penalty = 1.0F;
  out.frequency_penalty = 0.0F;
  out.presence_penalty = 0.0F;
  out.logit_bias.clear();
  out.watermark = false;
  out.top_n_tokens = 0;
  return out;
}

}  // namespace

// What is kept of a sequence: the tokens whose keys and values are in its blocks.
class ModelDrafter::Held final : public Drafter::Memory {
 public:
  explicit Held(ModelDrafter& owner) : owner_(owner) {}
  ~Held() override { owner_.drop(*this); }

  std::vector<int32_t> ids;
  int32_t num_known = 0;  // of ids: those that the text begins with, whatever it becomes
  KvLease lease;
  int32_t slot = -1;            // -1: has neither blocks nor ids
  int32_t num_slot_places = 0;  // of the lease, known to the device's block tables
  bool slot_is_started = false;
  uint64_t last_turn = 0;

 private:
  ModelDrafter& owner_;
};

ModelDrafter::ModelDrafter(std::unique_ptr<WorkerGroup> workers, const ModelDrafterOptions& options)
    : options_(options),
      workers_(std::move(workers)),
      kv_cache_(options.num_blocks, options.block_size, options.kv_groups) {
  for (int32_t slot = options.num_slots; slot-- > 0;) free_slots_.push_back(slot);
}

ModelDrafter::~ModelDrafter() = default;

std::unique_ptr<Drafter::Memory> ModelDrafter::start() {
  return std::make_unique<Held>(*this);
}

void ModelDrafter::drop(Held& held) {
  if (held.slot < 0) return;
  held.lease.reset();
  free_slots_.push_back(held.slot);
  std::erase(holders_, &held);
  held.slot = -1;
  held.ids.clear();
  held.num_known = 0;
  held.num_slot_places = 0;
  held.slot_is_started = false;
}

// Of those that do not draft in this call; null: there is none.
ModelDrafter::Held* ModelDrafter::longest_unused() const {
  const auto found = std::ranges::min_element(holders_, {}, &Held::last_turn);
  return found == holders_.end() || (*found)->last_turn == turn_ ? nullptr : *found;
}

bool ModelDrafter::take_slot(Held& held) {
  if (held.slot >= 0) return true;
  if (free_slots_.empty()) {
    Held* const other = longest_unused();
    if (other == nullptr) return false;
    drop(*other);
  }
  held.slot = free_slots_.back();
  free_slots_.pop_back();
  holders_.push_back(&held);
  return true;
}

bool ModelDrafter::grow(Held& held, int32_t num_tokens) {
  while (!kv_cache_.grow(held.lease, num_tokens)) {
    Held* const other = longest_unused();
    if (other == nullptr) return false;
    drop(*other);
  }
  return true;
}

// False: nothing can be drafted for it now.
bool ModelDrafter::begin(const Wanted& wanted, Held& held) {
  const auto size = static_cast<int32_t>(wanted.token_ids.size());
  if (wanted.max_tokens <= 0 || size == 0) return false;
  if (size + wanted.max_tokens > options_.max_total_tokens) return false;
  // From where it may differ: of the drafts some were not drawn.
  const auto from = static_cast<ptrdiff_t>(std::min(held.num_known, size));
  const auto is_new = [&](int32_t id) { return id >= options_.vocab_size; };
  if (std::any_of(wanted.token_ids.begin() + from, wanted.token_ids.end(), is_new)) return false;
  held.last_turn = turn_;
  if (!take_slot(held)) return false;
  const auto differs = std::mismatch(
      held.ids.begin() + std::min(from, std::ssize(held.ids)), held.ids.end(),
      wanted.token_ids.begin() + std::min(from, std::ssize(held.ids)), wanted.token_ids.end());
  held.ids.erase(differs.first, held.ids.end());
  // The last is computed, if once more: something is to be drawn from it.
  held.ids.resize(std::min(held.ids.size(), wanted.token_ids.size() - 1));
  held.num_known = static_cast<int32_t>(held.ids.size());
  kv_cache_.leave_window(held.lease, held.num_known);
  return grow(held, size + wanted.max_tokens - 1);
}

// The next of its text and drafts.
void ModelDrafter::add_rows(Part& part, int32_t num_rows) {
  Held& held = *part.held;
  const std::span<const int32_t> text = part.wanted->token_ids;
  const std::vector<int32_t>& drafts = *part.wanted->draft_ids;
  part.num_rows = num_rows;
  if (!held.slot_is_started) {
    batch_.slot_starts.push_back({.slot = held.slot,
                                  .sampling = draws_of(part.wanted->sampling),
                                  .token_ids = {},
                                  .num_prompt_tokens = 0,
                                  .adapter = 0});
    held.slot_is_started = true;
  }
  for (int32_t i = held.num_slot_places; i < held.lease.length(); ++i) {
    for (int32_t group = 0; group < kv_cache_.groups().num_groups(); ++group) {
      const int32_t block = held.lease.block(i, group);
      if (block == kNoBlock) continue;
      batch_.block_appends.push_back(
          {.slot = held.slot, .index = i, .block = block, .group = group});
    }
  }
  held.num_slot_places = held.lease.length();
  for (int32_t i = 0; i < num_rows; ++i) {
    const size_t at = held.ids.size();
    const int32_t id = at < text.size() ? text[at] : drafts[at - text.size()];
    batch_.positions.push_back(static_cast<int32_t>(at));
    batch_.token_ids.push_back(id);
    held.ids.push_back(id);
  }
  batch_.slots.push_back(held.slot);
  batch_.cu_seqlens_q.push_back(batch_.num_tokens());
  batch_.context_lens.push_back(static_cast<int32_t>(held.ids.size()));
  part.draws = held.ids.size() == text.size() + drafts.size();
  if (!part.draws) return;
  batch_.sample_rows.push_back({.row = batch_.num_tokens() - 1,
                                .slot = held.slot,
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
  ++turn_;
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
