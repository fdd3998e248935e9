#include "engine/runtime/drafters/row_drafter.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "engine/runtime/drafters/draft_rows.h"

namespace tgi {

// Rows [0, num_rows) are in its blocks; those behind them wait.
class RowDrafter::Text final : public DraftSlots::Hold {
 public:
  explicit Text(RowDrafter& drafter) : Hold(drafter.slots_), texts_(drafter.texts_) {
    texts_.push_back(this);
  }
  ~Text() override { std::erase(texts_, this); }

  int32_t num_waiting(int64_t cols) const {
    return static_cast<int32_t>(static_cast<int64_t>(waiting.size()) / cols);
  }
  void begin_at(int32_t token) {
    first = token;
    num_rows = 0;
    waiting.clear();
  }
  // Others may have taken its blocks: what waits is then the beginning.
  void settle() {
    if (has_slot()) return;
    first += num_rows;
    num_rows = 0;
  }

  int32_t first = 0;  // the token at which row 0 was computed
  int32_t num_rows = 0;
  std::vector<float> waiting;  // (num_waiting, cols)
  uint64_t last_read = 0;

 private:
  std::vector<Text*>& texts_;
};

RowDrafter::RowDrafter(std::unique_ptr<Device> device,
                       std::unique_ptr<DraftLayer> layer,
                       const RowDrafterOptions& options)
    : options_(options),
      device_(std::move(device)),
      layer_(std::move(layer)),
      slots_(options.num_slots, options.num_blocks, options.block_size, options.kv_groups) {
  for (const bool is_own : {false, true}) {
    const Tensor rows = is_own ? layer_->own_rows() : layer_->reported_rows();
    TGI_CHECK(rows.dtype == device_->info().activation_dtype && rows.stride == rows.cols);
  }
}

RowDrafter::~RowDrafter() = default;

std::unique_ptr<Drafter::Memory> RowDrafter::start() {
  return std::make_unique<Text>(*this);
}

// What is shown once more, as after a preemption, takes the place of what was there; behind a gap
// the text begins anew.
void RowDrafter::take_over(Text& text, const Computed& computed, int64_t cols) {
  text.settle();
  const int32_t row = computed.first_token - text.first;
  const int32_t num_rows = text.num_rows + text.num_waiting(cols);
  if (row < 0 || row > num_rows) return text.begin_at(computed.first_token);
  text.waiting.resize(static_cast<size_t>(std::max(row - text.num_rows, 0) * cols));
  text.num_rows = std::min(text.num_rows, row);
}

// There is room for the rows of those that run: texts that have not been read for longest, as they
// were preempted, lose theirs. Should they be shown again later, such a text goes on from there.
void RowDrafter::forget_waiting() {
  const auto waits = [](const Text* text) { return !text->waiting.empty(); };
  auto count = std::ranges::count_if(texts_, waits);
  for (; count > options_.num_slots; --count) {
    auto waiting = texts_ | std::views::filter(waits);
    (*std::ranges::min_element(waiting, {}, &Text::last_read))->waiting = {};
  }
}

void RowDrafter::read(std::span<const Computed> computed) {
  slots_.begin_turn();
  ++num_reads_;
  parts_.clear();
  const int64_t cols = layer_->reported_rows().cols;
  for (const Computed& each : computed) {
    auto& text = *static_cast<Text*>(each.memory);
    text.last_read = num_reads_;
    take_over(text, each, cols);
    const auto num_new = static_cast<int32_t>(std::ssize(each.rows) / cols);
    const int32_t num_waiting = text.num_waiting(cols) + num_new;
    if (num_waiting <= kMostWaitingRows) {
      text.waiting.insert(text.waiting.end(), each.rows.begin(), each.rows.end());
      continue;
    }
    // All but the last, from which something may be drawn.
    const int32_t num_read = num_waiting - 1;
    slots_.leave_window(text, text.num_rows);
    if (!slots_.take(text) || !slots_.grow(text, text.num_rows + num_read)) {
      slots_.drop(text);
      text.begin_at(each.first_token + num_new);
      continue;
    }
    parts_.push_back({.text = &text,
                      .token_ids = each.token_ids,
                      .rows = each.rows,
                      .sampling = each.sampling,
                      .at = text.num_rows,
                      .num_left = num_read});
  }
  run_parts(false);
  for (const Part& part : parts_) {
    part.text->num_rows = part.at;
    const auto last = part.rows.last(static_cast<size_t>(cols));
    part.text->waiting.assign(last.begin(), last.end());
  }
  forget_waiting();
}

void RowDrafter::draft(std::span<const Wanted> wanted) {
  slots_.begin_turn();
  parts_.clear();
  const int64_t cols = layer_->reported_rows().cols;
  for (const Wanted& each : wanted) {
    each.draft_ids->clear();
    auto& text = *static_cast<Text*>(each.memory);
    text.settle();
    const auto size = static_cast<int32_t>(each.token_ids.size());
    const int32_t num_waiting = text.num_waiting(cols);
    const int32_t num_rows = text.num_rows + num_waiting;
    if (each.max_tokens <= 0 || num_waiting == 0 || text.first + num_rows != size - 1) continue;
    if (size + each.max_tokens > options_.max_total_tokens || !slots_.take(text)) continue;
    slots_.leave_window(text, text.num_rows);
    if (!slots_.grow(text, num_rows + each.max_tokens - 1)) continue;
    parts_.push_back({.text = &text,
                      .token_ids = each.token_ids,
                      .sampling = each.sampling,
                      .draft_ids = each.draft_ids,
                      .max_tokens = each.max_tokens,
                      .at = text.num_rows,
                      .num_left = num_waiting});
  }
  run_parts(false);
  for (const Part& part : parts_) {
    part.text->num_rows = part.at;
    part.text->waiting.clear();
  }
  // What is written behind the text's rows from here on is overwritten by them.
  while (true) {
    std::erase_if(parts_,
                  [](const Part& part) { return std::ssize(*part.draft_ids) >= part.max_tokens; });
    if (parts_.empty()) break;
    for (Part& part : parts_) part.num_left = 1;
    run_parts(true);
  }
}

void RowDrafter::run_parts(bool is_own) {
  layer_->choose(is_own);
  const auto is_left = [](const Part& part) { return part.num_left > 0; };
  while (std::ranges::any_of(parts_, is_left)) {
    batch_.clear();
    rows_.clear();
    for (Part& part : parts_) {
      part.num_rows = std::min(part.num_left, options_.max_batch_tokens - batch_.num_tokens());
      if (part.num_rows > 0) add_rows(part, is_own);
    }
    send_rows(*device_, rows_, is_own ? layer_->own_rows() : layer_->reported_rows(), rounded_);
    take_drafts();
  }
}

const float* RowDrafter::row_of(const Part& part, bool is_own) const {
  if (is_own) return part.own.data();
  const int64_t cols = layer_->reported_rows().cols;
  const int64_t row = part.at - part.text->num_rows;
  const int32_t num_waiting = part.text->num_waiting(cols);
  return row < num_waiting ? part.text->waiting.data() + row * cols
                           : part.rows.data() + (row - num_waiting) * cols;
}

void RowDrafter::add_rows(Part& part, bool is_own) {
  const int64_t cols = (is_own ? layer_->own_rows() : layer_->reported_rows()).cols;
  Text& text = *part.text;
  slots_.announce(text, part.sampling, batch_);
  for (int32_t i = 0; i < part.num_rows; ++i) {
    const float* const row = row_of(part, is_own);
    rows_.insert(rows_.end(), row, row + cols);
    const auto token = static_cast<size_t>(text.first + part.at + 1);
    batch_.token_ids.push_back(token < part.token_ids.size()
                                   ? part.token_ids[token]
                                   : (*part.draft_ids)[token - part.token_ids.size()]);
    batch_.positions.push_back(part.at++);
  }
  batch_.slots.push_back(text.slot());
  batch_.cu_seqlens_q.push_back(batch_.num_tokens());
  batch_.context_lens.push_back(part.at);
  part.num_left -= part.num_rows;
  if (part.num_left > 0 || part.draft_ids == nullptr) return;
  batch_.pooled_rows.push_back({.row = static_cast<int32_t>(batch_.sample_rows.size()),
                                .num_rows = 1,
                                .position = part.at - 1});
  batch_.sample_rows.push_back(
      {.row = batch_.num_tokens() - 1, .slot = text.slot(), .position = text.first + part.at + 1});
}

void RowDrafter::take_drafts() {
  const StepResult& result = run_step(*device_, batch_, *layer_);
  size_t next = 0;
  for (Part& part : parts_) {
    if (part.num_rows == 0 || part.num_left > 0 || part.draft_ids == nullptr) continue;
    part.draft_ids->push_back(layer_->token_of(result.sampled[next].token.id));
    part.own = result.pooled[next];
    ++next;
  }
}

}  // namespace tgi
