// How one sequence's next token is picked: plain numbers, resolved and validated at intake.
#pragma once

#include <cstdint>
#include <vector>

namespace tgi {

struct LogitBias {
  int32_t id = 0;
  float bias = 0.0F;
};

// Order of work on a row of logits: watermark, repetition, frequency and presence penalty, bias,
// mask, temperature, top-k, top-p, typical-p, min-p, draw. Reported log-probabilities are those of
// the logits before all of this.
struct SamplingParams {
  bool do_sample = false;               // false: argmax, lowest id on ties
  float temperature = 1.0F;             // > 0
  int32_t top_k = 0;                    // 0: off
  float top_p = 1.0F;                   // 1: off
  float typical_p = 1.0F;               // 1: off
  float min_p = 0.0F;                   // 0: off
  float repetition_penalty = 1.0F;      // 1: off; once per distinct id of prompt and output
  float frequency_penalty = 0.0F;       // 0: off; times the count of the id in the output
  float presence_penalty = 0.0F;        // 0: off; for each distinct id of the output
  std::vector<LogitBias> logit_bias{};  // each id once
  bool watermark = false;
  uint64_t seed = 0;
  // Which of best_of this is: the draw is keyed by (seed, sequence_index, position).
  uint32_t sequence_index = 0;
  int32_t top_n_tokens = 0;  // how many alternatives to report

  bool has_penalties() const {
    return repetition_penalty != 1.0F || frequency_penalty != 0.0F || presence_penalty != 0.0F;
  }
};

}  // namespace tgi
