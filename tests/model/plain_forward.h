// A decoder's forward pass written the slow and obvious way, in double, over a whole sequence: no
// cache, no fusion, no device. Reads the same ModelConfig and ModelWeights as the real one, so that
// a golden that disagrees with it points at config reader, loader or golden.
#pragma once

#include <vector>

#include "engine/model/model_weights.h"

namespace tgi {

// The logits after each token, (num_tokens, vocab). The weights must be those of a FakeDevice.
std::vector<std::vector<double>> plain_logits(const ModelConfig& config,
                                              const ModelWeights& weights,
                                              const std::vector<int32_t>& token_ids);

}  // namespace tgi
