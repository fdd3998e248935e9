// Guesses what sequences will draw next. Steps verify the guesses (engine/tensor/batch.h), so that
// a wrong one costs time and never changes an answer. Belongs to the engine thread.
//
// One may look at the text alone (n-grams), at what the model drew the last token from
// (reads_hidden), at hidden states of all of a text as they are computed (reads_rows), or compute
// with a model of its own, whose KV a Memory then holds. Those that compute anything are made by
// the list in engine/runtime/drafters/drafter_kinds.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/tensor/sampling_params.h"

namespace tgi {

class Drafter {
 public:
  // What is kept of one sequence between its drafts. Must not outlive the drafter.
  class Memory {
   public:
    virtual ~Memory() = default;
  };

  struct Wanted {
    Memory* memory = nullptr;            // of start()
    std::span<const int32_t> token_ids;  // begin with those of the sequence's call before
    int32_t max_tokens = 0;
    std::vector<int32_t>* draft_ids = nullptr;  // set to what follows token_ids; may stay empty
    // (hidden), what the last of token_ids was drawn from, after the model's last norm; empty where
    // that is not known. Only of those that read it.
    std::span<const float> hidden{};
    const SamplingParams* sampling = nullptr;  // by which the sequence draws; null: the likeliest
  };

  virtual ~Drafter() = default;
  virtual std::unique_ptr<Memory> start() = 0;
  virtual bool reads_hidden() const { return false; }

  // What a step has computed of a sequence for good: its rows of StepResult.reported.
  struct Computed {
    Memory* memory = nullptr;                  // of start()
    std::span<const int32_t> token_ids;        // of the text, the one behind the last row included
    int32_t first_token = 0;                   // the place of the first row in the text
    std::span<const float> rows{};             // (num_rows, cols)
    const SamplingParams* sampling = nullptr;  // as Wanted's
  };
  virtual bool reads_rows() const { return false; }
  // Of all sequences of a step at once, before any of them is drafted for. What lies before a
  // sequence's first row, as the prefix that it took from the cache, is never shown; what is shown
  // may begin anew.
  virtual void read(std::span<const Computed> /*computed*/) {}

  // A draft takes no time worth speaking of, and needs no more than the text.
  virtual bool is_free() const { return false; }
  // Of all sequences of a step at once. No wish is a bad one: what can't be drafted now, as its
  // text is still being read, gets none.
  virtual void draft(std::span<const Wanted> wanted) = 0;
};

}  // namespace tgi
