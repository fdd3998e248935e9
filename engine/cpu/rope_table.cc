// See rope_table.h.
#include "engine/cpu/rope_table.h"

#include <cmath>

namespace tgi {
namespace {

// 1 where the position needs no scaling: inv_freq is then the spec's own.
double dynamic_base(const RopeSpec& rope, int32_t position) {
  const double factor = rope.dynamic_factor;
  const double length = static_cast<double>(position) + 1.0;
  const double grown = factor * length / rope.dynamic_original_positions - (factor - 1.0);
  const double dim = rope.rotary_dim;
  return rope.base * std::pow(grown, dim / (dim - 2.0));
}

}  // namespace

void fill_cos_sin(const RopeSpec& rope, int32_t position, float* out) {
  const int32_t half = rope.rotary_dim / 2;
  const bool dynamic =
      rope.dynamic_original_positions > 0 && position >= rope.dynamic_original_positions;
  const double base = dynamic ? dynamic_base(rope, position) : 0.0;
  for (int32_t i = 0; i < half; ++i) {
    const float inv_freq = dynamic
                               ? static_cast<float>(1.0 / std::pow(base, 2.0 * i / rope.rotary_dim))
                               : rope.inv_freq[static_cast<size_t>(i)];
    const float angle = static_cast<float>(position) * inv_freq;
    out[i] = static_cast<float>(std::cos(static_cast<double>(angle))) * rope.attention_factor;
    out[half + i] =
        static_cast<float>(std::sin(static_cast<double>(angle))) * rope.attention_factor;
  }
}

}  // namespace tgi
