// Matmul of many rows with bf16 panels on the matrix unit: up to 32 rows times two panels at a
// time, whose sums stay in four tiles while x and the panels pass by. The same bits as DotPairs.
//
// May read up to 31 rows of x behind the last one; what they give is dropped.
#pragma once

#include "engine/cpu/kernels/amx_sums.h"
#include "engine/cpu/kernels/amx_unit.h"
#include "engine/cpu/kernels/dot_pairs.h"
#include "engine/cpu/kernels/kernel_table.h"

namespace tgi {

// Columns of a block: two panels of them are 32 KiB and stay in the nearest cache while x passes
// by, which is loaded past it. Four products take 4 KiB; all of that from the cache behind it would
// take longer than they do.
inline constexpr int64_t kAmxKBlock = 512;
inline constexpr int64_t kAmxKPart = kMatmulPartBytes / 2;

// As bf16, denormals as 0 before they can be rounded up to a normal number. Vectors whose processor
// has an instruction for it have their own (native_pairs.h).
template <typename V>
void store_flushed_bf16(const V& x, std::byte* to) {
  (x * V::set1(1.0F)).store_bf16(to);
}

// x of a bf16 matmul: as bf16, columns in order.
template <typename V>
struct AmxBf16X {
  static int64_t x_bytes(int64_t k, int64_t /*group_size*/) { return round_up(k, kPairBlock) * 2; }
  static void prepare(const float* x, int64_t k, int64_t /*group_size*/, std::byte* out) {
    const int64_t padded = round_up(k, kPairBlock);
    for (int64_t i = 0; i < padded; i += 16) {
      store_flushed_bf16(V::load_first(x + i, k - i), out + i * 2);
    }
  }
};

template <typename V, typename Unit>
class AmxBf16 {
 public:
  static void run(const MatmulBlock& block) {
    Unit unit{TileConfig(64)};
    Sums sums;
    for_amx_parts<Sums::kRows, 2 * Sums::kPairs>(
        block, block.k, kAmxKPart, [&](const AmxPart& part) { run_part(unit, block, part, sums); });
  }

 private:
  using Sums = AmxSums<V, Unit>;

  struct Place {
    const std::byte* x;      // (32, k)
    const std::byte* lines;  // of the first of the panels
    int64_t begin, end;      // columns
    float* sums;             // (32, 32)
  };

  // The lines of the next block of two panels, some of which are fetched with each step of the
  // tiles, so that all are there when the last rows are done.
  class Ahead {
   public:
    Ahead(const MatmulBlock& block, const AmxPart& part, int64_t panel, int64_t k) {
      const int64_t goes_on = k + kAmxKBlock;
      const auto [next_panel, begin] =
          goes_on < part.end ? AmxPart::Place{panel, goes_on} : part.after(panel);
      if (next_panel < block.num_panels) {
        next_[0] = block.panels + next_panel * block.panel_bytes + begin * 32;
      } else if (block.next_panels != nullptr) {
        next_[0] = block.next_panels;
      } else {
        return;
      }
      const bool one_panel = next_panel + 1 == block.num_panels;
      next_[1] = next_[0] + (one_panel ? 0 : block.panel_bytes);
      const int64_t cols = block.k - begin < kAmxKBlock ? block.k - begin : kAmxKBlock;
      left_ = round_up(cols, kPairBlock) / 2;
      const int64_t num_steps = (part.num_rows + 31) / 32 * (kAmxKBlock / kPairBlock);
      per_step_ = (left_ + num_steps - 1) / num_steps;
    }
    [[gnu::always_inline]] void fetch() {
      const int64_t count = per_step_ < left_ ? per_step_ : left_;
      left_ -= count;
      for (std::byte const*& next : next_) {
        for (int64_t i = 0; i < count; ++i) __builtin_prefetch(next + i * 64, 0, 2);
        next += count * 64;
      }
    }

   private:
    const std::byte* next_[2] = {};  // of each panel
    int64_t left_ = 0;               // lines of each
    int64_t per_step_ = 0;
  };

  static void run_part(Unit& unit, const MatmulBlock& block, const AmxPart& part, Sums& sums) {
    for (int64_t panel = part.first_panel; panel < part.end_panel; panel += 2) {
      const bool one_panel = panel + 1 == block.num_panels;
      const int64_t pair = part.pair(panel);
      for (int64_t k = part.begin; k < part.end; k += kAmxKBlock) {
        Ahead ahead(block, part, panel, k);
        for (int64_t r = 0; r < part.num_rows; r += 32) {
          const Place place{.x = block.x + (part.row + r) * block.x_stride_bytes,
                            .lines = block.panels + panel * block.panel_bytes,
                            .begin = k,
                            .end = k + kAmxKBlock < part.end ? k + kAmxKBlock : part.end,
                            .sums = sums.of(r, pair)};
          const bool one_row = part.num_rows - r <= 16;
          if (one_panel) {
            one_row ? tiles<1, 1>(unit, block, place, ahead)
                    : tiles<2, 1>(unit, block, place, ahead);
          } else {
            one_row ? tiles<1, 2>(unit, block, place, ahead)
                    : tiles<2, 2>(unit, block, place, ahead);
          }
        }
      }
      if (part.is_last()) sums.store(block, part.row, part.num_rows, panel, pair);
    }
  }

  // kRows tiles of 16 rows times kPanels panels.
  template <int kRows, int kPanels>
  static void tiles(Unit& unit, const MatmulBlock& block, const Place& place, Ahead& ahead) {
    constexpr bool kTwoRows = kRows == 2;
    constexpr bool kTwoPanels = kPanels == 2;
    const int64_t stride = block.x_stride_bytes;
    const int64_t panel_bytes = block.panel_bytes;
    const std::byte* const x = place.x;
    const std::byte* const lines = place.lines;
    float* const sums = place.sums;
    const bool first = place.begin == 0;
    begin<0>(unit, first, sums);
    if constexpr (kTwoPanels) begin<1>(unit, first, sums + 16);
    if constexpr (kTwoRows) begin<2>(unit, first, sums + 16 * 32);
    if constexpr (kTwoRows && kTwoPanels) begin<3>(unit, first, sums + 16 * 32 + 16);
    for (int64_t i = place.begin; i < place.end; i += kPairBlock) {
      ahead.fetch();
      unit.template load_once<4>(x + i * 2, stride);
      unit.template load<6>(lines + i * 32, 64);
      unit.template dot_bf16<0>();
      if constexpr (kTwoPanels) {
        unit.template load<7>(lines + panel_bytes + i * 32, 64);
        unit.template dot_bf16<1>();
      }
      if constexpr (kTwoRows) {
        unit.template load_once<5>(x + 16 * stride + i * 2, stride);
        unit.template dot_bf16<2>();
        if constexpr (kTwoPanels) unit.template dot_bf16<3>();
      }
    }
    unit.template store<0>(sums, 128);
    if constexpr (kTwoPanels) unit.template store<1>(sums + 16, 128);
    if constexpr (kTwoRows) unit.template store<2>(sums + 16 * 32, 128);
    if constexpr (kTwoRows && kTwoPanels) unit.template store<3>(sums + 16 * 32 + 16, 128);
  }

  template <int kTile>
  static void begin(Unit& unit, bool first, const float* sums) {
    if (first) return unit.template zero<kTile>();
    unit.template load<kTile>(sums, 128);
  }
};

}  // namespace tgi
