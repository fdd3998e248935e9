// Sequences cut into steps, for ops whose bits must not depend on how.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/conformance/harness.h"

namespace tgi {

// One step: how many tokens of each sequence it takes on, from where the last one stopped.
using Steps = std::vector<std::vector<int32_t>>;

// At most `most` at a time; the sequences take turns being cut.
inline Steps cut_into(const std::vector<int32_t>& lengths, uint32_t seed, int32_t most) {
  Random random(seed);
  std::vector<int32_t> left = lengths;
  Steps out;
  while (*std::ranges::max_element(left) > 0) {
    std::vector<int32_t>& step = out.emplace_back();
    for (int32_t& remaining : left) {
      step.push_back(std::min(remaining, most == 1 ? 1 : random.integer(0, most)));
      remaining -= step.back();
    }
  }
  return out;
}

}  // namespace tgi
