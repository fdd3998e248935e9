// A step's attention with random queries and a random paged cache: computed by the kernels and by
// plain loops in double precision over the same rounded numbers.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cuda/attention_plan.h"
#include "cuda/kernels/attention.h"

namespace tgi::cuda {

struct AttentionSetup {
  DType dtype = DType::kBF16;
  bool cache_is_f8 = false;
  int32_t group = 1;
  int32_t num_kv_heads = 1;
  int32_t head_dim = 64;
  int32_t block_size = 16;
  int32_t sliding_window = 0;
  int32_t attention_chunk = 0;
  float softcap = 0.0F;
  bool alibi = false;
  bool sinks = false;
  std::vector<SequenceRows> sequences = {};  // slots and first rows are filled in
  int32_t num_padding_rows = 0;  // after those of the sequences: of nobody's slot, one token each
  int32_t num_decode_blocks = 5;
  bool deterministic = false;
  int64_t shared_bytes = int64_t{228} << 10;  // of a multiprocessor
  // (optional: -1) A token of the first sequence whose key is what the last row of the sequence
  // asks for, in head 0: all attention of that row and head belongs there.
  int32_t needle = -1;

  int32_t num_heads() const { return group * num_kv_heads; }
  int32_t width() const { return num_heads() * head_dim; }
};

// A step that computes the last num_rows tokens of a context of context_len for each sequence.
class AttentionCase {
 public:
  AttentionCase(AttentionSetup setup, uint32_t seed);

  // Through the kernels, (num_tokens, width): rows of padding come last. Checks that nothing else
  // was written.
  std::vector<float> run() const;
  // As run, of other sequences of the same contexts' tokens: `sequences` name the slot of the setup
  // and which of its rows (first_row counts those of the case).
  std::vector<float> run(const std::vector<SequenceRows>& sequences, bool deterministic) const;

  // What is right, and how far rounding may lead away from it.
  struct Expected {
    std::vector<double> out;
    std::vector<double> bound;
  };
  Expected expected() const;

  // What the needle says, (head_dim), and where in the result of run() it is to be found.
  std::vector<double> needle_value() const;
  size_t needle_row_begin() const;

  const AttentionSetup& setup() const { return setup_; }

 private:
  double key(int32_t sequence, int32_t head, int32_t token, int32_t dim) const;
  double value(int32_t sequence, int32_t head, int32_t token, int32_t dim) const;
  size_t cached_at(int32_t sequence, int32_t head, int32_t token, int32_t dim) const;
  void expect_row(int32_t sequence, int32_t row, int32_t head, Expected& out) const;
  int32_t last_row() const;  // of the first sequence
  float scale() const;
  Tensor head_row(float* values) const;  // one for each head

  AttentionSetup setup_;
  int32_t num_tokens_ = 0;
  int32_t max_blocks_ = 0;
  int64_t q_stride_ = 0;
  std::vector<float> q_;           // (num_tokens, q_stride), rounded
  std::vector<float> keys_;        // (num_blocks + 1, kv heads, block_size, head_dim), as stored
  std::vector<float> values_;      // as keys_; NaN where no token is
  std::vector<float> key_scales_;  // (kv heads) of an f8 cache
  std::vector<float> value_scales_;
  std::vector<float> slopes_;          // (heads)
  std::vector<float> sinks_;           // (heads)
  std::vector<int32_t> block_tables_;  // (slots + 1, max_blocks)
};

}  // namespace tgi::cuda
