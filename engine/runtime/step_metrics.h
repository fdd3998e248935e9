// What the engine counts about its steps, for whoever scrapes. Plain values, copied out under the
// engine's lock.
#pragma once

#include <cstdint>

#include "base/histogram.h"

namespace tgi {

// Figures of the steps that hold prompt tokens ("prefill"), or of those that hold none ("decode").
struct StepKindMetrics {
  int64_t num_steps = 0;
  int64_t num_failed = 0;
  Histogram inference_s{duration_bounds()};  // from building the step to handing out its tokens
  Histogram forward_s{duration_bounds()};    // from submitting the step to its results
  Histogram deliver_s{duration_bounds()};    // text, stop checks and events of its tokens
};

struct StepMetrics {
  StepKindMetrics prefill;
  StepKindMetrics decode;
  Histogram batch_size{
      Histogram::geometric(1, 2, 11)};  // sequences of each step with prompt tokens
  int64_t num_mixed_steps = 0;          // prompt chunks beside decoding sequences
  int64_t num_prefix_hits = 0;  // finished requests that took some of their prompt from the cache
  // Requests that ended because the client went away or read nothing, by what they were doing.
  int64_t num_cancelled_queued = 0;
  int64_t num_cancelled_prefill = 0;
  int64_t num_cancelled_decode = 0;
  Histogram masks_s{duration_bounds()};  // to make the masks of a step that has guided sequences
  int64_t num_not_finite = 0;            // requests that ended because logits were not finite
};

}  // namespace tgi
