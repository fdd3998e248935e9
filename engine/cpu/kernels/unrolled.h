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

// A tile that waits while a loop needs the registers for its own sums: a large one in memory. Left
// to itself the compiler would keep some of it in registers, and parts of the loop's sums in
// memory.
template <typename V, int MR, int NP>
class ParkedTile {
  static constexpr bool kInMemory = MR * NP > 8;

 public:
  [[gnu::always_inline]] explicit ParkedTile(const V (&tile)[MR][NP]) {
    unrolled<MR>(TGI_UNROLLED(r) {
      unrolled<NP>(TGI_UNROLLED(j) { store(r.value, j.value, tile[r.value][j.value]); });
    });
    hide();
  }
  [[gnu::always_inline]] V load(int r, int j) const {
    return kInMemory ? V::load(lanes_ + (r * NP + j) * 16) : tile_[r][j];
  }
  [[gnu::always_inline]] void store(int r, int j, const V& value) {
    if constexpr (kInMemory) value.store(lanes_ + (r * NP + j) * 16);
    if constexpr (!kInMemory) tile_[r][j] = value;
  }
  // What is in memory may have changed, as far as the compiler knows.
  [[gnu::always_inline]] void hide() {
    if constexpr (kInMemory) asm volatile("" : : "r"(lanes_) : "memory");
  }

 private:
  V tile_[kInMemory ? 1 : MR][kInMemory ? 1 : NP];
  alignas(64) float lanes_[kInMemory ? MR * NP * 16 : 1];
};

}  // namespace tgi
