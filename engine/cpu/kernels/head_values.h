// The scales and minima of one group from the head of a panel of integers, see
// engine/cpu/panel_layout.h: sixteen lanes of f32, the same on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/panel_layout.h"

namespace tgi {

// `from`: 16 scales or minima as bf16, f32 or f16.
template <typename V>
[[gnu::always_inline]] inline V load_plain(HeadScales as, const std::byte* from) {
  if (as == HeadScales::kF32) return V::load(reinterpret_cast<const float*>(from));
  return as == HeadScales::kF16 ? V::load_f16(from) : V::load_bf16(from);
}

// `place`: of the group among those of the head.
template <typename V, bool kIsMxfp4>
[[gnu::always_inline]] inline V head_scales(const GroupHead& head,
                                            const std::byte* at,
                                            int64_t place) {
  if constexpr (kIsMxfp4) return V::load_exponents(at + place * kPanelRows);
  if (head.factors()) {
    return V::load_f16(at) * V::load_int8(at + head.scales_at() + place * kPanelRows);
  }
  return load_plain<V>(head.scales, at + place * kPanelRows * head.scale_bytes());
}

// Times -1 where they have factors.
template <typename V>
[[gnu::always_inline]] inline V head_minima(const GroupHead& head,
                                            const std::byte* at,
                                            int64_t place) {
  const std::byte* const minima = at + head.minima_at();
  if (head.factors()) {
    return V::load_f16(at + kPanelRows * 2) * V::load_int8(minima + place * kPanelRows);
  }
  return load_plain<V>(head.scales, minima + place * kPanelRows * head.scale_bytes());
}

// What a group's start (dot_int.h) is multiplied with for the minima: it is -offset times the sum
// of x.
[[gnu::always_inline]] inline float minima_factor(const GroupHead& head, int32_t offset) {
  return (head.factors() ? 1.0F : -1.0F) / static_cast<float>(offset);
}

}  // namespace tgi
