// Watermark of Kirchenbauer et al., 2023: whether an id is on the green list that the token before
// it opens. Each id is green with probability kWatermarkGamma, independently; green ids get
// kWatermarkDelta. Also for device code.
#pragma once

#include <cstdint>

namespace tgi {

inline constexpr double kWatermarkGamma = 0.5;
inline constexpr float kWatermarkDelta = 2.0F;

// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) as the hash.
constexpr bool is_green(int32_t previous_id, int32_t id) {
  uint64_t z = static_cast<uint64_t>(static_cast<uint32_t>(previous_id)) << 32 |
               static_cast<uint64_t>(static_cast<uint32_t>(id));
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return (z >> 11) < static_cast<uint64_t>(kWatermarkGamma * 0x1p53);
}

}  // namespace tgi
