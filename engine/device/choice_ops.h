// Ops of attention whose queries see only some of the tokens before them, which an indexer chooses:
// beside those of attention each token has queries and one key for that.
//
// Sources: DeepSeek Sparse Attention (https://arxiv.org/abs/2512.02556), section 2.1; MiniMax M3,
// models/minimax_m3_vl in `transformers`.
#pragma once

#include <cstdint>

#include "engine/tensor/kv_groups.h"
#include "engine/tensor/tensor.h"

namespace tgi {

inline constexpr int32_t kMaxIndexerHeads = 128;

// What is chosen: blocks of block_size tokens, from position 0 on, those of the highest scores, of
// two equal ones the first. A block is as good as the best of its tokens that are not after the
// query; the local_blocks last ones, the query's own included, come before all others.
struct ChoiceRule {
  int32_t top_k = 0;  // blocks; 0: all tokens are seen
  int32_t block_size = 1;
  int32_t local_blocks = 0;

  // A query with no more tokens up to its own sees all of them.
  int64_t sees_all_up_to() const { return int64_t{top_k} * block_size; }

  bool operator==(const ChoiceRule&) const = default;
};

// For each query of the step its choice among the tokens of its context, which holds until the next
// one. With weights, the score of a token is the sum over the heads of weight * max(q . k, 0), and
// there is one choice; else each head makes its own, by q . k. Queries are rounded as those of
// attention are, before they meet the cached keys.
struct ChooseArgs {
  KvPlace place{};  // of the keys: KvHeads.keys_only, one for all heads
  // Not 1: what is chosen are entries (compress_ops.h) of so many tokens, one by one.
  int32_t tokens_per_entry = 1;
  ChoiceRule rule;
  int32_t num_heads = 0;  // kMaxIndexerHeads at most
  int32_t head_dim = 0;
  Tensor q;        // (num_tokens, num_heads * head_dim)
  Tensor weights;  // (optional: data null) (num_tokens, num_heads)

  int32_t num_choices() const { return weights.data == nullptr ? num_heads : 1; }
  // The last that a query at `position` may choose; -1: there is none yet.
  int64_t last_choice(int64_t position) const { return (position + 1) / tokens_per_entry - 1; }
};

// Whether attention sees what was chosen: query head h of the model what choice
// h / heads_per_choice says.
struct SeenChoice {
  int32_t heads_per_choice = 0;  // 0: all tokens are seen
  int32_t first_head = 0;        // the model's number of this rank's first head

  int32_t of_head(int32_t head) const { return (first_head + head) / heads_per_choice; }
};

}  // namespace tgi
