// Loops whose index is a constant in the body. What they index is then kept in registers: g++
// unrolls nested loops too late to see that.
#pragma once

#include <utility>

namespace tgi {

// A constant once the body is inlined, which is always; until then one body is compiled instead of
// one for each index.
struct LoopIndex {
  int value;
};

// Calls body(i) for i from 0 to N - 1.
template <int N, typename Body>
[[gnu::always_inline]] inline void unrolled(Body&& body) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
    (body(LoopIndex{kIndex}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

#define TGI_UNROLLED(index) [&](LoopIndex index) __attribute__((always_inline))

// The same where the index is a template's argument: i is a type with a static value.
template <int N, typename Body>
[[gnu::always_inline]] inline void unrolled_types(Body&& body) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, kIndex>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

#define TGI_UNROLLED_TYPES(index) [&](auto index) __attribute__((always_inline))

// sums[r][j] = value for all r and j.
template <int MR, int NP, typename V>
[[gnu::always_inline]] inline void fill_tile(V (&sums)[MR][NP], const V& value) {
  unrolled<MR>(
      TGI_UNROLLED(r) { unrolled<NP>(TGI_UNROLLED(j) { sums[r.value][j.value] = value; }); });
}

}  // namespace tgi
