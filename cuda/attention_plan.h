// Who computes which part of a step's attention: arithmetic on lengths, on the host, once a step
// for all layers.
//
// Decode rows (one query) are cut along the context into items of nearly the same number of tiles
// for each block of a fixed grid, whatever the lengths: a flat split-KV schedule. Longer chunks are
// cut into tiles of queries. Pure functions; the arrays are reused, a steady step allocates
// nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/kernels/step.h"

namespace tgi::cuda {

inline constexpr int32_t kDecodeTile = 64;  // tokens of context; item borders are multiples of it
inline constexpr int32_t kPrefillQueryTile = 64;  // queries

// A run of tiles of one (sequence, kv head). `partial` is where in the workspace its result goes;
// -1: it is the whole context, and goes straight to the output.
struct DecodeItem {
  int32_t sequence = 0;
  int32_t kv_head = 0;
  int32_t first_token = 0;  // of the context; a multiple of kDecodeTile
  int32_t num_tokens = 0;
  int32_t partial = -1;
};

// The partial results of one (sequence, kv head), merged in order.
struct DecodeMerge {
  int32_t sequence = 0;
  int32_t kv_head = 0;
  int32_t first_partial = 0;
  int32_t num_partials = 0;
};

struct PrefillTile {
  int32_t sequence = 0;
  int32_t first_query = 0;  // of the sequence's rows of this step
};

struct AttentionPlanOptions {
  int32_t num_kv_heads = 0;
  int32_t num_blocks = 1;  // of the decode grid: CUDA blocks; decode_grid_blocks
  // Every row goes through the prefill kernel, whose tiles begin at position 0.
  bool deterministic = false;
};

struct AttentionPlan {
  std::vector<DecodeItem> items;     // of block b: [block_begin[b], block_begin[b + 1])
  std::vector<int32_t> block_begin;  // (num_blocks + 1)
  std::vector<DecodeMerge> merges;
  std::vector<PrefillTile> tiles;  // the ones with the most context first
};

// Most items, merges and partials there can be for so many sequences: each of the num_blocks - 1
// borders between two blocks cuts at most one (sequence, kv head), in two.
int32_t max_decode_items(int32_t num_sequences, const AttentionPlanOptions& options);
int32_t max_decode_merges(int32_t num_sequences, const AttentionPlanOptions& options);
int32_t max_decode_partials(int32_t num_sequences, const AttentionPlanOptions& options);
int32_t max_prefill_tiles(int32_t num_sequences, int32_t num_tokens);

void plan_attention(std::span<const SequenceRows> sequences,
                    const AttentionPlanOptions& options,
                    AttentionPlan& plan);

}  // namespace tgi::cuda
