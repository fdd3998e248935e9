// What an indexer chose for the queries of a step (engine/device/choice_ops.h), and how it chooses.
#pragma once

#include <cstdint>
#include <span>

#include "engine/device/backend.h"
#include "engine/tensor/tensor.h"

namespace tgi {

class TokenChoices {
 public:
  static int64_t bytes(const SlotLayout& layout);

  TokenChoices() = default;
  explicit TokenChoices(const SlotLayout& layout);

  // For the queries of a step, of which each makes so many choices.
  void begin(int32_t num_choices) { num_choices_ = num_choices; }

  int32_t num_choices() const { return num_choices_; }
  int64_t num_words() const { return num_words_; }  // of a choice
  // (num_choices, num_words) of that query: a bit for each position, the lowest of a word first.
  uint64_t* of_query(int64_t query) { return bits() + query * num_choices_ * num_words_; }
  const uint64_t* of_query(int64_t query) const {
    return bits() + query * num_choices_ * num_words_;
  }

  // For a query at `position`: scores are those of the blocks up to its own, and are changed. None
  // is NaN. Writes the words up to that of position `last`.
  static void choose(const ChoiceRule& rule,
                     int64_t position,
                     int64_t last,
                     std::span<float> scores,
                     uint64_t* out);

 private:
  uint64_t* bits() const { return static_cast<uint64_t*>(bits_.data()); }

  int32_t num_choices_ = 0;
  int64_t num_words_ = 0;
  Buffer bits_;  // (max_batch_tokens, most choices, num_words)
};

}  // namespace tgi
