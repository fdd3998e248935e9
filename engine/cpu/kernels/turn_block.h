// 16 columns of a panel of 16-bit keys become the rows of a panel of values, as
// engine/cpu/panel_layout.h has both: where latents are values too. A transposition of 64-bit lanes
// between two permutations within the lines. Copies only, so that bits are those of any other way.
// Templates over the kernel's vector type, as all that is compiled for one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/cpu/panel_layout.h"
#include "engine/tensor/tensor.h"

namespace tgi {

// Places of elements by their column d and position p, both below 16. A column's bits are d3 d2 d1
// d0, those of a position likewise.
template <DType kDType, PairOrder kOrder>
struct TurnPlaces;

// Line d3d2d1, in it p and d0; becomes line p3p2p1, in it d and p0.
template <>
struct TurnPlaces<DType::kBF16, PairOrder::kAdjacent> {
  static constexpr int64_t line(int i, bool /*is_second_half*/) { return i; }
  static constexpr int before(int word) { return word / 4 * 4 + word % 2 * 2 + word / 2 % 2; }
  static constexpr int after(int lane) { return lane; }
};

// Line d0d3d2 (of 16 columns, among the lines of 32), in it p and not d1; becomes line p0p3p2, in
// it d and not p1.
template <>
struct TurnPlaces<DType::kBF16, PairOrder::kEvenOdd> {
  static constexpr int64_t line(int i, bool is_second_half) {
    return i / 4 * 8 + (is_second_half ? 4 : 0) + i % 4;
  }
  static constexpr int before(int word) {
    const int line = word / 4;
    const int d1 = word / 2 % 2;
    const int p1 = 1 - word % 2;
    return 2 * (line % 4 * 4 + p1 * 2 + line / 4) + (1 - d1);
  }
  static constexpr int after(int lane) { return lane % 2 * 8 + lane / 4 * 2 + lane / 2 % 2; }
};

// Line d3d2d1, in it d0 and p; becomes line p3p2p1, in it p0 and d.
template <>
struct TurnPlaces<DType::kF16, PairOrder::kAdjacent> {
  static constexpr int64_t line(int i, bool /*is_second_half*/) { return i; }
  static constexpr int before(int word) { return word % 2 * 16 + word / 4 * 2 + word / 2 % 2; }
  static constexpr int after(int lane) { return lane % 8 * 2 + lane / 8; }
};

template <typename V, DType kDType, PairOrder kOrder>
class BlockTurn {
  using Words [[gnu::vector_size(64)]] = uint16_t;
  using Lanes [[gnu::vector_size(64)]] = uint32_t;
  using Wide [[gnu::vector_size(64)]] = uint64_t;
  using Places = TurnPlaces<kDType, kOrder>;

 public:
  // `keys`: the lines of the 16 columns, for PairOrder::kEvenOdd of the 32 that they are half of.
  // `values`: a panel, 8 lines.
  [[gnu::always_inline]] static void run(const std::byte* keys,
                                         bool is_second_half,
                                         std::byte* values) {
    Wide lines[8];
    for (int i = 0; i < 8; ++i) {
      Words words;
      __builtin_memcpy(&words, keys + Places::line(i, is_second_half) * 64, sizeof words);
      permute_words(words, std::make_index_sequence<32>());
      lines[i] = reinterpret_cast<Wide>(words);
    }
    exchange<1>(lines, std::make_index_sequence<8>());
    exchange<2>(lines, std::make_index_sequence<8>());
    exchange<4>(lines, std::make_index_sequence<8>());
    for (int i = 0; i < 8; ++i) {
      auto lanes = reinterpret_cast<Lanes>(lines[i]);
      permute_lanes(lanes, std::make_index_sequence<16>());
      __builtin_memcpy(values + i * 64, &lanes, sizeof lanes);
    }
  }

 private:
  template <size_t... kI>
  [[gnu::always_inline]] static void permute_words(Words& x, std::index_sequence<kI...> /*all*/) {
    x = __builtin_shufflevector(x, x, Places::before(static_cast<int>(kI))...);
  }
  template <size_t... kI>
  [[gnu::always_inline]] static void permute_lanes(Lanes& x, std::index_sequence<kI...> /*all*/) {
    x = __builtin_shufflevector(x, x, Places::after(static_cast<int>(kI))...);
  }
  // Bit kBit of the line and of the lane change places.
  template <int kBit, size_t... kI>
  [[gnu::always_inline]] static void exchange(Wide (&lines)[8],
                                              std::index_sequence<kI...> /*all*/) {
    for (int i = 0; i < 8; ++i) {
      if ((i & kBit) != 0) continue;
      const Wide a = lines[i];
      const Wide b = lines[i + kBit];
      lines[i] = __builtin_shufflevector(a, b, ((kI & kBit) == 0 ? kI : 8 + kI - kBit)...);
      lines[i + kBit] = __builtin_shufflevector(a, b, ((kI & kBit) == 0 ? kI + kBit : 8 + kI)...);
    }
  }
};

}  // namespace tgi
