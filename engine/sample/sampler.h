// Picks the next token of one sequence from its row of logits; the definition for every device.
//
// Order of work: watermark, repetition, frequency and presence penalty, bias, mask, temperature,
// top-k, top-p, typical-p, min-p, draw. Each filter works on the distribution that the one before
// it left, renormalised. Reported log-probabilities are those of the logits as they came in.
//
// Logits that are not finite as they came in (a NaN, +infinity, or nothing but -infinity) are not
// sampled from: the lowest allowed id is reported with the log-probability NaN. What bias, mask and
// temperature make of finite ones is no such case: +infinity then counts as the largest float, and
// when all are -infinity the lowest allowed id is picked.
//
// No state and no allocation: what a call needs is in SamplerScratch, one per thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sample/sampler_math.h"
#include "engine/sample/watermark.h"
#include "engine/tensor/batch.h"
#include "engine/tensor/sampling_params.h"

namespace tgi {

// A distinct id of prompt and output.
struct TokenCount {
  int32_t id = 0;
  int32_t output_count = 0;  // 0: only in the prompt
};

struct SamplerRow {
  const float* logits = nullptr;  // (vocab_size)
  int32_t vocab_size = 0;
  const SamplingParams* params = nullptr;
  std::span<const TokenCount> history;  // each id once, any order; empty without penalties
  std::span<const int32_t> drafts{};    // ids of the output behind those of the history
  int32_t previous_id = -1;             // the last token of the context, for the watermark
  int32_t position = 0;                 // of the token to be drawn
  const uint32_t* allowed = nullptr;    // (optional) bit id % 32 of word id / 32; null: all
  // (optional) (vocab_size), each once: by whose random bits an id is drawn; null: by its own.
  const int32_t* draw_ids = nullptr;
};

class SamplerScratch {
 public:
  explicit SamplerScratch(int32_t vocab_size);
  static int64_t bytes(int32_t vocab_size);

  std::vector<float> logits;   // (vocab_size) after penalties, mask and temperature
  std::vector<int32_t> ids;    // (vocab_size) the first so many are candidates
  std::vector<float> values;   // (vocab_size) their logits
  std::vector<float> weights;  // (vocab_size) exp(value - highest)
  std::vector<float> keys;     // (vocab_size) what the filter at work orders by, best lowest
  std::vector<int32_t> order;  // (vocab_size) indices of candidates, being sorted
};

void sample_row(const SamplerRow& row,
                const SamplerMath& math,
                SamplerScratch& scratch,
                SampledToken& out);

// log_softmax(logits)[asked.target_id]; the alternatives go to `top_tokens`. NaN and none of them
// when the logits are not finite.
float score_row(const float* logits,
                int32_t vocab_size,
                const ScoreRow& asked,
                const SamplerMath& math,
                SamplerScratch& scratch,
                std::vector<TokenScore>& top_tokens);

}  // namespace tgi
