// What an indexer chose for the queries of a step (engine/device/choice_ops.h), and how it chooses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/device/backend.h"
#include "engine/tensor/tensor.h"

namespace tgi {

class TokenChoices {
 public:
  static int64_t bytes(const SlotLayout& layout);

  TokenChoices() = default;
  explicit TokenChoices(const SlotLayout& layout);

  // For the queries of a step, of which each makes so many choices, of blocks of that size.
  void begin(int32_t num_choices, int32_t block_size) {
    num_choices_ = num_choices;
    block_size_ = block_size;
  }

  int32_t num_choices() const { return num_choices_; }
  int32_t block_size() const { return block_size_; }
  int64_t num_words() const { return num_words_; }  // of a choice
  // (num_choices, num_words) of that query: a bit for each position, the lowest of a word first.
  uint64_t* of_query(int64_t query) { return bits() + query * num_choices_ * num_words_; }
  const uint64_t* of_query(int64_t query) const {
    return bits() + query * num_choices_ * num_words_;
  }

  // For a query at `position`: scores are those of the blocks up to its own, and are changed. None
  // is NaN. `sorted` has room for as many. Writes the words up to that of position `last`.
  static void choose(const ChoiceRule& rule,
                     int64_t position,
                     int64_t last,
                     std::span<float> scores,
                     std::vector<float>& sorted,
                     uint64_t* out);

  // The chosen positions up to `position`, ascending.
  static void list(const uint64_t* chosen, int64_t position, std::vector<int32_t>& out);

 private:
  uint64_t* bits() const { return static_cast<uint64_t*>(bits_.data()); }

  int32_t num_choices_ = 0;
  int32_t block_size_ = 1;
  int64_t num_words_ = 0;
  Buffer bits_;  // (max_batch_tokens, most choices, num_words)
};

}  // namespace tgi
