// The order in which AutoAWQ's "gemm" layout keeps eight values in a word: the one at bits 4 i is
// number kAwqOrder[i].
//
// Source: https://github.com/casper-hansen/AutoAWQ (WQLinear_GEMM)
#pragma once

#include <array>
#include <cstdint>

namespace tgi {

inline constexpr std::array<int64_t, 8> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};

// The other way: where value number i lies, in bits.
constexpr int64_t awq_shift(int64_t number) {
  return (number % 2 == 0 ? number / 2 : 4 + number / 2) * 4;
}

static_assert(awq_shift(kAwqOrder[1]) == 4 && awq_shift(kAwqOrder[4]) == 16 && awq_shift(7) == 28);

}  // namespace tgi
