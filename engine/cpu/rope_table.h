// Cosines and sines of one RopeSpec for the positions of a step. Angles are float(p) * inv_freq in
// float, their cosine and sine taken in double and rounded: what transformers computes.
#pragma once

#include <cstdint>

#include "engine/device/backend.h"

namespace tgi {

// out: (rotary_dim / 2) cosines, then as many sines, times the attention factor.
void fill_cos_sin(const RopeSpec& rope, int32_t position, float* out);

}  // namespace tgi
