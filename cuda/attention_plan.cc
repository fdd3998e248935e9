#include "cuda/attention_plan.h"

#include <algorithm>

namespace tgi::cuda {
namespace {

int32_t num_tiles(int32_t context_len) {
  return (context_len + kDecodeTile - 1) / kDecodeTile;
}

bool decodes(const SequenceRows& sequence, const AttentionPlanOptions& options) {
  return sequence.num_rows == 1 && !options.deterministic;
}

// Deals the tiles of (sequence, kv head) after (sequence, kv head) out to the blocks: block b gets
// the tiles [total * b / num_blocks, total * (b + 1) / num_blocks) of the flat order.
class Dealer {
 public:
  Dealer(int64_t total_tiles, int32_t num_blocks, AttentionPlan& plan)
      : total_tiles_(total_tiles), num_blocks_(num_blocks), plan_(plan) {
    plan_.block_begin.push_back(0);
    next_border_ = border(1);
  }

  void deal(int32_t sequence, int32_t kv_head, int32_t context_len) {
    const int32_t tiles = num_tiles(context_len);
    int32_t num_pieces = 0;
    const int32_t first_partial = num_partials_;
    for (int32_t tile = 0; tile < tiles; ++num_pieces) {
      while (dealt_ == next_border_) close_block();
      const auto room =
          static_cast<int32_t>(std::min<int64_t>(tiles - tile, next_border_ - dealt_));
      const bool is_whole = room == tiles;
      const int32_t first_token = tile * kDecodeTile;
      plan_.items.push_back({.sequence = sequence,
                             .kv_head = kv_head,
                             .first_token = first_token,
                             .num_tokens = std::min(room * kDecodeTile, context_len - first_token),
                             .partial = is_whole ? -1 : num_partials_++});
      tile += room;
      dealt_ += room;
    }
    if (num_pieces > 1) {
      plan_.merges.push_back({.sequence = sequence,
                              .kv_head = kv_head,
                              .first_partial = first_partial,
                              .num_partials = num_pieces});
    }
  }

  void close_all() {
    while (static_cast<int32_t>(plan_.block_begin.size()) <= num_blocks_) close_block();
  }

 private:
  int64_t border(int64_t block) const { return total_tiles_ * block / num_blocks_; }

  void close_block() {
    plan_.block_begin.push_back(static_cast<int32_t>(plan_.items.size()));
    next_border_ = border(static_cast<int64_t>(plan_.block_begin.size()));
  }

  const int64_t total_tiles_;
  const int32_t num_blocks_;
  AttentionPlan& plan_;
  int64_t dealt_ = 0;
  int64_t next_border_ = 0;  // where the open block ends
  int32_t num_partials_ = 0;
};

void plan_decode(std::span<const SequenceRows> sequences,
                 const AttentionPlanOptions& options,
                 AttentionPlan& plan) {
  int64_t total = 0;
  for (const SequenceRows& sequence : sequences) {
    if (decodes(sequence, options)) total += num_tiles(sequence.context_len);
  }
  Dealer dealer(total * options.num_kv_heads, options.num_blocks, plan);
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (!decodes(sequences[i], options)) continue;
    for (int32_t head = 0; head < options.num_kv_heads; ++head) {
      dealer.deal(static_cast<int32_t>(i), head, sequences[i].context_len);
    }
  }
  dealer.close_all();
}

// How much context the last query of a tile sees.
int32_t visible_context(const PrefillTile& tile, std::span<const SequenceRows> sequences) {
  const SequenceRows& sequence = sequences[static_cast<size_t>(tile.sequence)];
  const int32_t end = std::min(tile.first_query + kPrefillQueryTile, sequence.num_rows);
  return sequence.context_len - sequence.num_rows + end;
}

void plan_prefill(std::span<const SequenceRows> sequences,
                  const AttentionPlanOptions& options,
                  AttentionPlan& plan) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (decodes(sequences[i], options)) continue;
    for (int32_t query = 0; query < sequences[i].num_rows; query += kPrefillQueryTile) {
      plan.tiles.push_back({.sequence = static_cast<int32_t>(i), .first_query = query});
    }
  }
  // Not stable_sort, which allocates: ties are broken by where the tile was.
  std::sort(plan.tiles.begin(), plan.tiles.end(), [&](const PrefillTile& a, const PrefillTile& b) {
    const int32_t context_a = visible_context(a, sequences);
    const int32_t context_b = visible_context(b, sequences);
    if (context_a != context_b) return context_a > context_b;
    if (a.sequence != b.sequence) return a.sequence < b.sequence;
    return a.first_query < b.first_query;
  });
}

int64_t num_pairs(int32_t num_sequences, const AttentionPlanOptions& options) {
  return options.deterministic ? 0 : static_cast<int64_t>(num_sequences) * options.num_kv_heads;
}

}  // namespace

int32_t max_decode_items(int32_t num_sequences, const AttentionPlanOptions& options) {
  const int64_t pairs = num_pairs(num_sequences, options);
  return static_cast<int32_t>(pairs == 0 ? 0 : pairs + options.num_blocks - 1);
}

int32_t max_decode_merges(int32_t num_sequences, const AttentionPlanOptions& options) {
  const int64_t pairs = num_pairs(num_sequences, options);
  return static_cast<int32_t>(std::min<int64_t>(pairs, options.num_blocks - 1));
}

int32_t max_decode_partials(int32_t num_sequences, const AttentionPlanOptions& options) {
  // Each cut adds a piece, and each (sequence, kv head) that is cut has one more piece than cuts.
  const int32_t merges = max_decode_merges(num_sequences, options);
  return merges == 0 ? 0 : merges + options.num_blocks - 1;
}

int32_t max_prefill_tiles(int32_t num_sequences, int32_t num_tokens) {
  // A sequence of r rows has 1 + (r - 1) / kPrefillQueryTile tiles.
  const int32_t sequences = std::min(num_sequences, num_tokens);
  return sequences + (num_tokens - sequences) / kPrefillQueryTile;
}

void plan_attention(std::span<const SequenceRows> sequences,
                    const AttentionPlanOptions& options,
                    AttentionPlan& plan) {
  plan.items.clear();
  plan.block_begin.clear();
  plan.merges.clear();
  plan.tiles.clear();
  plan_decode(sequences, options, plan);
  plan_prefill(sequences, options, plan);
}

}  // namespace tgi::cuda
