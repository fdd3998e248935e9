// How far a loaded model's next-token distributions are from those of the same checkpoint computed
// in float32 on the processor: what its dtype, quantisation and backend cost, and whether one of
// them is broken on this machine.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/runtime/served_model.h"

namespace tgi {

struct LogitCheck {
  int64_t num_positions = 0;  // of the text
  double mean_kl = 0;         // of the float32 distribution to the model's, in nats
  double max_kl = 0;
  double greedy_agreement = 0;  // share of the positions where both take the same token
  // At each position: the vocabulary, or as many as the device reports.
  int64_t num_tokens_compared = 0;
  int64_t reference_bytes = 0;  // of the second copy while it ran
};

// A few lines in several languages and a piece of code.
std::string_view logit_check_text();

// Bytes of weights that the second copy takes.
int64_t logit_check_bytes(const ServedModel& model);

// Runs the text through the model's engine, beside whatever else it does, then loads the checkpoint
// again in float32. Takes seconds to minutes. Throws kOutOfMemory with both numbers when that does
// not fit into the memory that is free, kOverloaded when the engine has no room, kNotFinite when
// the model's logits are not finite, saying whether they are so in float32 too.
LogitCheck check_logits(ServedModel& model);

// KL(p || q) over what q names: `q` are (id, log-probability), all other tokens count as one. `p`
// has a log-probability for every id.
double kl_divergence(std::span<const float> p, std::span<const TokenScore> q);

}  // namespace tgi
