// Ops of attention that sees what lies behind its window as entries: each stands for a run of
// tokens, the first run from position 0 on, and is there from the run's last token on.
//
// Source: DeepSeek V4, section 2.3, models/deepseek_v4 in `transformers`.
#pragma once

#include <cstdint>

#include "engine/tensor/kv_groups.h"
#include "engine/tensor/tensor.h"

namespace tgi {

// Keeps a row of each token and, for each run of tokens that ends in the step, makes its entry: for
// each column the mean of what its tokens have there, weighed by the softmax of their gates; then
// normed (RMS) and rotated as the run's first token is. A row is [values | gates], head_dim columns
// each; where entries overlap twice as many, of which the first half is for the entry of the next
// run and the second for the run's own, so that an entry is made of two runs, the first of one.
// Rows are rounded to the cache's type before that.
struct CompressArgs {
  KvPlace rows{};                // of the rows: KvHeads.keys_only
  KvPlace entries{};             // of the entries: KvHeads.keys_only, with KvHeads.tokens_per_row
  int32_t tokens_per_entry = 0;  // 2 at least
  int32_t head_dim = 0;          // of an entry
  bool overlaps = false;
  int32_t rope = -1;          // from add_rope; -1: none
  int32_t first_rotated = 0;  // column of an entry
  float norm_eps = 0.0F;
  const Tensor* norm = nullptr;  // (1, head_dim), f32
  // (1, tokens_per_entry * gates of a row), f32: added to the gates of a run's tokens, row by row
  const Tensor* gate_bias = nullptr;
  Tensor x;  // (num_tokens, row)

  int64_t row_values() const { return (overlaps ? 2 : 1) * int64_t{head_dim}; }
};

// The entries that attention sees beside its window, as more keys of one KV head.
struct SeenEntries {
  KvPlace place{};
  int32_t tokens_per_entry = 0;  // 0: there are none

  // Of those that are there for a query at `position`.
  int64_t count(int64_t position) const { return (position + 1) / tokens_per_entry; }
  // That of the run's last token, where the cache has the entry.
  int64_t position_of(int64_t entry) const { return (entry + 1) * tokens_per_entry - 1; }
};

}  // namespace tgi
