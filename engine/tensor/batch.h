// One step as plain host arrays: the only thing that goes from the scheduler to the workers, and
// what comes back.
//
// Running sequences sit in slots of a fixed table that lives on the device: block table, sampling
// parameters, token counts for the penalties, the token sampled last. A step sends only what
// changed in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/tensor/sampling_params.h"

namespace tgi {

// A sequence takes the slot: everything the slot held before is forgotten. The ids must stay valid
// until the step was submitted.
struct SlotStart {
  int32_t slot = 0;
  SamplingParams sampling;
  std::span<const int32_t> token_ids;  // prompt and what was generated so far
  int32_t num_prompt_tokens = 0;       // of token_ids
  int32_t adapter = 0;                 // of its rows: as it was told the device; 0: none
};

// block_tables[group][slot][index] = block
struct BlockAppend {
  int32_t slot = 0;
  int32_t index = 0;
  int32_t block = 0;
  int32_t group = 0;  // of layers: engine/tensor/kv_groups.h
};

// Draw the next token of `slot` from the logits of token row `row`.
//
// Rows that are verified: where the last token rows of a sequence are drafts, guesses of what it
// will draw, the row before them and each of theirs has its SampleRow, one behind the other. Each
// is drawn as if the drafts before it were of the context. It counts, for the slot's last token and
// its penalties, while each of those was drawn as it was guessed.
struct SampleRow {
  int32_t row = 0;
  int32_t slot = 0;
  int32_t position = 0;    // of the token to be drawn, from 0 at the start of the prompt
  bool is_masked = false;  // only some tokens may be drawn: TokenMasks says which
  int32_t num_drafts = 0;  // before `position`: the tokens of rows (row - num_drafts, row]
};

// Which tokens the masked rows of a step may draw, row after row in the order of its sample_rows.
// Known later than the batch: it takes the tokens that the steps before have drawn.
struct TokenMasks {
  int32_t words_per_row = 0;   // (vocab_size + 31) / 32
  std::vector<uint32_t> bits;  // (num_masks, words_per_row); bit id % 32 of word id / 32
};

// Report the log-probability of `target_id` under the logits of token row `row` (prompt
// log-probabilities).
struct ScoreRow {
  int32_t row = 0;
  int32_t target_id = 0;
  int32_t num_top = 0;  // alternatives to list
};

// What becomes of the hidden states of some rows.
enum class Pooling : uint8_t {
  kRows,         // each is reported
  kSum,          // their sum, row after row
  kWeightedSum,  // the sum of (position + 1) * row
  kMax,          // of each column
};

// Report the hidden states of some rows after the last norm: of kept_rows [row, row + num_rows), or
// of a model that draws tokens of sample_rows; all of one sequence, one behind the other in it.
struct PooledRows {
  int32_t row = 0;
  int32_t num_rows = 0;
  int32_t position = 0;  // of the first, from 0 at the start of the prompt
  Pooling pooling = Pooling::kRows;
};

// Sequence i of the step owns token rows [cu_seqlens_q[i], cu_seqlens_q[i + 1]), which are the last
// tokens of a context of context_lens[i] tokens. Prefill chunks and decode rows mix freely.
struct Batch {
  std::vector<int32_t> token_ids;     // (num_tokens); -1 - s: the token that slot s sampled last
  std::vector<int32_t> positions;     // (num_tokens)
  std::vector<int32_t> slots;         // (num_sequences)
  std::vector<int32_t> cu_seqlens_q;  // (num_sequences + 1)
  std::vector<int32_t> context_lens;  // (num_sequences); this step's tokens included
  std::vector<SampleRow> sample_rows;
  std::vector<ScoreRow> score_rows;
  // Only where the model's answer is its hidden states, or for what drafts from them: pooled_rows.
  std::vector<int32_t> kept_rows;  // token rows, each once
  std::vector<PooledRows> pooled_rows;
  std::vector<int32_t> token_types;        // (num_tokens), or empty: all are of type 0
  std::vector<SlotStart> slot_starts;      // applied before block_appends
  std::vector<BlockAppend> block_appends;  // applied before the forward pass
  bool reports_rows = false;               // StepResult.reported is wanted

  int32_t num_tokens() const { return static_cast<int32_t>(token_ids.size()); }
  int32_t num_sequences() const { return static_cast<int32_t>(slots.size()); }
  int32_t num_logit_rows() const {
    return static_cast<int32_t>(sample_rows.size() + score_rows.size());
  }
  // Token rows that go through the last norm, in this order: those whose logits are wanted, those
  // that are pooled.
  int32_t num_output_rows() const {
    return num_logit_rows() + static_cast<int32_t>(kept_rows.size());
  }

  // Calls visit(row, mask) for each of sample_rows: `mask` is which of TokenMasks is the row's, -1
  // where it has none. Returns how many masks there are.
  template <typename Visit>
  int32_t visit_sample_rows(Visit visit) const {
    int32_t num_masks = 0;
    for (const SampleRow& row : sample_rows) visit(row, row.is_masked ? num_masks++ : -1);
    return num_masks;
  }
  int32_t num_masks() const {
    return visit_sample_rows([](const SampleRow&, int32_t) {});
  }

  // Keeps the capacity: a steady step allocates nothing.
  void clear() {
    token_ids.clear();
    positions.clear();
    slots.clear();
    cu_seqlens_q.clear();
    cu_seqlens_q.push_back(0);
    context_lens.clear();
    sample_rows.clear();
    score_rows.clear();
    kept_rows.clear();
    pooled_rows.clear();
    token_types.clear();
    slot_starts.clear();
    block_appends.clear();
    reports_rows = false;
  }
};

// Logits that hold a NaN or +infinity, or nothing but -infinity, are no distribution: what is
// reported of them has the log-probability NaN, the id means nothing, and there are no
// alternatives.
struct TokenScore {
  int32_t id = 0;
  float logprob = 0.0F;  // natural log, of the raw distribution
};

struct SampledToken {
  TokenScore token;
  // Alternatives by falling logprob; a tie with the last of top_n_tokens is included.
  std::vector<TokenScore> top_tokens;
};

// What a step gave back, in the order of the batch's sample_rows, score_rows and pooled_rows.
struct StepResult {
  std::vector<SampledToken> sampled;
  std::vector<float> scores;
  std::vector<std::vector<TokenScore>> score_tops;  // as SampledToken::top_tokens
  std::vector<std::vector<float>> pooled;           // (hidden), or of kRows (num_rows, hidden)
  // (num_tokens, SlotLayout.reported_cols): what the forward pass reports of every token row; empty
  // where the batch does not want it.
  std::vector<float> reported;
};

}  // namespace tgi
