// The rows of a step that are drawn, scored or pooled, kept from submit to sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/tensor/batch.h"

namespace tgi {

class StepRows {
 public:
  void begin(const Batch& batch) {
    TGI_CHECK(!is_open_);
    is_open_ = true;
    sample_rows = batch.sample_rows;
    score_rows = batch.score_rows;
    kept_rows = batch.kept_rows;
    pooled_rows = batch.pooled_rows;
    inputs_.clear();
    for (const SampleRow& row : sample_rows) {
      inputs_.push_back(batch.token_ids[static_cast<size_t>(row.row)]);
    }
    mask_of_.clear();
    num_masks_ = batch.visit_sample_rows(
        [this](const SampleRow&, int32_t mask) { mask_of_.push_back(mask); });
    masks_ = nullptr;
  }

  // Before the rows are gone through; `masks` must stay until then.
  void sample(const TokenMasks& masks, int32_t vocab_size) {
    TGI_CHECK(is_open_);
    is_open_ = false;
    const int32_t num_words = (vocab_size + 31) / 32;
    TGI_CHECK(num_masks_ == 0 ||
              (masks.words_per_row == num_words &&
               static_cast<int64_t>(masks.bits.size()) == int64_t{num_masks_} * num_words));
    masks_ = &masks;
  }

  bool is_open() const { return is_open_; }
  int32_t num_rows() const { return static_cast<int32_t>(sample_rows.size() + score_rows.size()); }
  int32_t num_output_rows() const { return num_rows() + static_cast<int32_t>(kept_rows.size()); }

  // Calls visit(token row) for each output row.
  template <typename Visit>
  void visit_output_rows(Visit visit) const {
    for (const SampleRow& row : sample_rows) visit(row.row);
    for (const ScoreRow& row : score_rows) visit(row.row);
    for (const int32_t row : kept_rows) visit(row);
  }

  // Of the i-th of sample_rows; null: all tokens.
  const uint32_t* allowed(size_t i) const {
    if (mask_of_[i] < 0) return nullptr;
    return masks_->bits.data() + static_cast<int64_t>(mask_of_[i]) * masks_->words_per_row;
  }

  // The drafts before the i-th of sample_rows, which are the tokens of the rows up to its own.
  std::span<const int32_t> drafts(size_t i) const {
    const auto count = static_cast<size_t>(sample_rows[i].num_drafts);
    return std::span(inputs_).subspan(i + 1 - count, count);
  }

  // Calls visit(slot, token id) for each token that counts of those that were drawn, in order.
  template <typename Visit>
  void visit_accepted(std::span<const SampledToken> sampled, Visit visit) const {
    bool counts = true;
    for (size_t i = 0; i < sample_rows.size(); ++i) {
      const bool is_first = sample_rows[i].num_drafts == 0;
      counts = is_first || (counts && sampled[i - 1].token.id == inputs_[i]);
      if (counts) visit(sample_rows[i].slot, sampled[i].token.id);
    }
  }

  std::vector<SampleRow> sample_rows;
  std::vector<ScoreRow> score_rows;
  std::vector<int32_t> kept_rows;
  std::vector<PooledRows> pooled_rows;

 private:
  std::vector<int32_t> inputs_;   // (sample_rows) the token of the row
  std::vector<int32_t> mask_of_;  // (sample_rows) -1: not masked
  int32_t num_masks_ = 0;
  const TokenMasks* masks_ = nullptr;
  bool is_open_ = false;  // submitted and not sampled
};

}  // namespace tgi
