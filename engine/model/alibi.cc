#include "engine/model/alibi.h"

#include <bit>
#include <cmath>

namespace tgi {
namespace {

constexpr double kMaxBias = 8.0;

std::vector<float> slopes_of_power(uint32_t count) {
  std::vector<float> out;
  for (uint32_t i = 1; i <= count; ++i) {
    out.push_back(static_cast<float>(std::exp2(-kMaxBias * i / count)));
  }
  return out;
}

void add_every_other(const std::vector<float>& from,
                     size_t first,
                     size_t wanted,
                     std::vector<float>& to) {
  for (size_t i = first; i < from.size() && to.size() < wanted; i += 2) to.push_back(from[i]);
}

}  // namespace

std::vector<float> alibi_slopes_of_lower_power(int32_t num_heads) {
  const auto heads = static_cast<uint32_t>(num_heads);
  const uint32_t lower = std::bit_floor(heads);
  std::vector<float> out = slopes_of_power(lower);
  add_every_other(slopes_of_power(2 * lower), 0, heads, out);
  return out;
}

std::vector<float> alibi_slopes_of_upper_power(int32_t num_heads) {
  const auto heads = static_cast<uint32_t>(num_heads);
  const std::vector<float> all = slopes_of_power(std::bit_ceil(heads));
  if (all.size() == heads) return all;
  std::vector<float> out;
  add_every_other(all, 1, heads, out);
  add_every_other(all, 0, heads, out);
  return out;
}

}  // namespace tgi
