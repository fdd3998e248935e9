// What the kernels of a step read, as plain structs that host and device see alike. All of it lives
// at fixed addresses, so that a captured step can be replayed with other contents.
#pragma once

#include <cstdint>

namespace tgi::cuda {

// A slot's SamplingParams in the form of the sample kernels.
struct SlotSampling {
  float temperature = 1.0F;
  float top_p = 1.0F;
  float typical_p = 1.0F;
  float min_p = 0.0F;
  float repetition_penalty = 1.0F;
  float frequency_penalty = 0.0F;
  float presence_penalty = 0.0F;
  int32_t top_k = 0;
  int32_t top_n_tokens = 0;
  int32_t num_bias = 0;  // of the slot's row of the bias table
  uint32_t sequence_index = 0;
  bool do_sample = false;
  bool watermark = false;
  bool has_penalties = false;
  uint64_t seed = 0;
};

struct TokenBiasEntry {
  int32_t id = 0;
  float bias = 0.0F;
};

// What is known of a distinct id of a slot's prompt and output; only for slots with penalties.
inline constexpr uint16_t kSeenToken = 0x8000;        // in prompt or output
inline constexpr uint16_t kOutputCountMask = 0x7fff;  // how often in the output; saturates

// The fixed table of running sequences. Row num_slots is nobody's: padding rows of a captured step
// use it, its block table names the spare block num_blocks everywhere.
struct SlotTables {
  int32_t num_slots = 0;
  int32_t max_blocks = 0;  // of a slot
  int32_t vocab_size = 0;
  int32_t max_bias = 0;             // of a slot
  int32_t num_groups = 1;           // of layers
  int32_t* block_tables = nullptr;  // (num_groups, num_slots + 1, max_blocks)
  // (num_slots + 1), of the context that is known: of the prompt, or sampled.
  int32_t* last_tokens = nullptr;
  SlotSampling* sampling = nullptr;  // (num_slots + 1)
  TokenBiasEntry* bias = nullptr;    // (num_slots, max_bias)
  uint16_t* token_counts = nullptr;  // (num_slots, vocab_size)
  int32_t* adapters = nullptr;       // (num_slots + 1), places; null: there are none

  // A group's block tables, by slot.
  int32_t* tables_of(int32_t group) const {
    return block_tables + static_cast<int64_t>(group) * (num_slots + 1) * max_blocks;
  }
};

// A row of tokens that a step computes. Padding: slot num_slots, context_index 0, position 0, token
// 0.
struct TokenRow {
  int32_t token_id = 0;  // -1 - s: the token that slot s sampled last
  int32_t position = 0;  // for the rotary embedding
  int32_t slot = 0;
  int32_t context_index = 0;  // where in the sequence its key and value go
};

// A row of logits that is wanted. Padding: row 0, slot num_slots.
struct LogitRow {
  int32_t row = 0;           // of the step's tokens
  int32_t slot = -1;         // draws the slot's next token; -1: scores target_id
  int32_t position = 0;      // of the token to be drawn
  int32_t target_id = 0;     // to be scored
  int32_t num_top = 0;       // alternatives to list of a row that scores
  int32_t mask = -1;         // of the step's masks, of a row that draws; -1: any token may be drawn
  int32_t num_drafts = 0;    // of SampleRow
  bool is_verified = false;  // there are drafts before or behind it: what is drawn may not count
};

// The step's tokens of one sequence: rows [first_row, first_row + num_rows), the last of a context
// of context_len tokens.
struct SequenceRows {
  int32_t slot = 0;
  int32_t first_row = 0;
  int32_t num_rows = 0;
  int32_t context_len = 0;
};

// A layer's keys and values: of each of num_blocks + 1 blocks (num_kv_heads, block_size, head_dim).
struct LayerCache {
  void* keys = nullptr;
  void* values = nullptr;
  int32_t block_rows = 0;  // from one block to the next, in rows of head_dim elements
};

}  // namespace tgi::cuda
