// The keys and values of one tile of 64 positions as a kernel multiplies with them: panels where
// they lie in the paged cache or, of codes of 8 bits, of values that are columns of their keys and
// of a last chunk that is not full, in the workspace. Included only by the one source per
// instruction set.
#pragma once

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/turn_block.h"
#include "engine/cpu/kernels/unrolled.h"
#include "engine/cpu/panel_layout.h"

namespace tgi {

inline constexpr int64_t kChunk = 16;  // positions of one panel of keys
inline constexpr int kChunksPerTile = kAttentionTile / kChunk;

// What comes is fetched `kTilesAhead` tiles before: one before into the nearest cache, two before
// into the second-level cache, whose fetches are more at a time.
template <typename V, DType kDType, PairOrder kOrder, int kTilesAhead = 2>
class CacheTile {
 public:
  static constexpr DType kType = kDType;
  static constexpr int kFetchLocality = kTilesAhead == 1 ? 3 : 2;  // of __builtin_prefetch
  static constexpr PanelLayout kValueLayout{.type = panel_type(kDType),
                                            .cols = kChunk,
                                            .pair_order = kOrder,
                                            .pair_block = kValuePairBlock};
  static constexpr int64_t kValuePanelBytes = kValueLayout.bytes();

  // `values`: the room for those of a chunk or, where they are taken out of keys or codes, of the
  // tile. Of codes, `scales`: (2, 64), `keys`: the room for the panels of the tile. `block` must
  // outlive this.
  CacheTile(const AttentionBlock& block, std::byte* values, float* scales, std::byte* keys)
      : block_(block),
        width_(round_up(block.value_dim, 16)),
        key_panel_bytes_(
            PanelLayout{.type = panel_type(kDType), .cols = block.head_dim, .pair_order = kOrder}
                .bytes()),
        key_scales_(scales),
        value_scales_(block.v == nullptr ? scales : scales + kAttentionTile),
        values_(values),
        keys_(keys) {}

  bool has_scales() const {
    if constexpr (kDType != DType::kBF16) return false;
    return block_.codes == CacheCodes::kInt8;
  }
  // Of 16 positions.
  V key_scales(int64_t chunk) const { return V::load(key_scales_ + chunk * kChunk); }
  V value_scales(int64_t chunk) const { return V::load(value_scales_ + chunk * kChunk); }

  // Begins the tile of positions from `begin` on, a multiple of 64, of which there are `count`;
  // `last` is that of the last one of all. Only keys can be asked for yet.
  void begin_keys(int64_t begin, int64_t count, int64_t last) {
    begin_ = begin;
    count_ = count;
    last_ = last;
    if (is_gathered()) {
      gather_keys();
    } else if (holds_codes()) {
      decode_keys();
    }
  }
  void begin_values() {
    if (block_.v == nullptr) {
      take_values();
    } else if (holds_codes()) {
      decode_values();
    } else if (count_ % kChunk != 0) {
      copy_last_values();
    }
  }

  int64_t num_chunks() const { return (count_ + kChunk - 1) / kChunk; }
  const std::byte* key_panel(int64_t chunk) const {
    return keys_are_taken() ? keys_ + chunk * key_panel_bytes_ : key_chunk(begin_ + chunk * kChunk);
  }
  // What to fetch meanwhile: the same chunk of a tile to come, or of this one where there is none.
  // Codes were fetched as they were decoded.
  bool fetches_keys() const { return has_next() && !keys_are_taken(); }
  const std::byte* next_key_panel(int64_t chunk) const {
    const int64_t next = begin_ + kAhead + chunk * kChunk;
    return fetches_keys() && next <= last_ ? key_chunk(next) : key_panel(chunk);
  }

  // Panels of 16 of value_dim.
  template <int NP>
  void value_panels(int64_t chunk, int64_t panel, const std::byte* (&out)[NP]) const {
    const std::byte* values = value_chunk(begin_ + chunk * kChunk);
    if (block_.values_are_taken()) {
      values = values_ + chunk * value_chunk_bytes();
    } else if (count_ - chunk * kChunk < kChunk) {
      values = values_;
    }
    for (int j = 0; j < NP; ++j) out[j] = values + (panel + j) * kValuePanelBytes;
  }
  // That tile's values are fetched only where it is whole: then each chunk here has one there.
  bool fetches_values() const {
    return !block_.values_are_taken() && begin_ + kAhead + kAttentionTile <= last_ + 1;
  }
  template <int NP>
  void next_value_panels(int64_t chunk, int64_t panel, const std::byte* (&out)[NP]) const {
    const std::byte* const values = value_chunk(begin_ + kAhead + chunk * kChunk);
    for (int j = 0; j < NP; ++j) out[j] = values + (panel + j) * kValuePanelBytes;
  }

 private:
  bool is_gathered() const { return block_.gathered != nullptr; }
  bool keys_are_taken() const { return holds_codes() || is_gathered(); }
  bool has_next() const { return begin_ + kAhead <= last_; }
  bool holds_codes() const {
    if constexpr (kDType != DType::kBF16) return false;
    return block_.codes != CacheCodes::kNone;
  }
  // Of a chunk whose numbers take `bytes` in panels.
  int64_t stored_bytes(int64_t bytes) const {
    return holds_codes() ? bytes / kElementBytes + (has_scales() ? kScaleBytes : 0) : bytes;
  }
  int64_t value_chunk_bytes() const { return width_ / 16 * kValuePanelBytes; }
  // Of the 16 positions from `position` on, as they are stored.
  const std::byte* key_chunk(int64_t position) const {
    const int64_t block = block_.block_table[position / block_.block_size];
    return block_.k + block * block_.k_block_stride_bytes +
           position % block_.block_size / kChunk * stored_bytes(key_panel_bytes_);
  }
  const std::byte* entry(int64_t position) const {
    const int64_t block = block_.entry_blocks[position / block_.block_size];
    return block_.entries + block * block_.entry_block_stride_bytes +
           position % block_.block_size / block_.tokens_per_entry * block_.entry_bytes;
  }
  const std::byte* value_chunk(int64_t position) const {
    if (block_.v == nullptr) return values_;
    const int64_t block = block_.block_table[position / block_.block_size];
    return block_.v + block * block_.v_block_stride_bytes +
           position % block_.block_size / kChunk * stored_bytes(value_chunk_bytes());
  }

  // The chunk that is not full, with zeros behind: what lies there may be anything, and not even 0
  // times it is 0.
  void copy_last_values() {
    const int64_t end = begin_ + count_;
    __builtin_memcpy(values_, value_chunk(end / kChunk * kChunk),
                     static_cast<size_t>(value_chunk_bytes()));
    clear_values(values_, end % kChunk);
  }
  void clear_values(std::byte* values, int64_t from) {
    for (int64_t panel = 0; panel < width_ / 16; ++panel) {
      for (int64_t position = from; position < kChunk; ++position) {
        for (int64_t lane = 0; lane < 16; ++lane) {
          __builtin_memset(values + panel * kValuePanelBytes + kValueLayout.offset(lane, position),
                           0, static_cast<size_t>(kElementBytes));
        }
      }
    }
  }

  // The keys of the positions that the tile stands for, side by side. What a position has in each
  // line of a panel lies apart from what it has in the next.
  void gather_keys() {
    constexpr int64_t kLine = kChunk * kKeyStep;
    const int64_t num_lines = key_panel_bytes_ / kLine;
    for (int64_t c = 0; c < num_chunks(); ++c) {
      const int32_t* const positions = block_.gathered + begin_ + c * kChunk;
      const int64_t count = count_ - c * kChunk < kChunk ? count_ - c * kChunk : kChunk;
      const std::byte* from[kChunk];
      int64_t steps[kChunk];  // to the next line
      for (int64_t i = 0; i < kChunk; ++i) {
        const int64_t at = i < count ? i : 0;
        const bool is_entry = begin_ + c * kChunk + at >= block_.first_entry;
        from[i] = is_entry ? entry(positions[at])
                           : key_chunk(positions[at]) + positions[at] % kChunk * kKeyStep;
        steps[i] = is_entry ? kKeyStep : kLine;
      }
      std::byte* to = keys_ + c * key_panel_bytes_;
      for (int64_t line = 0; line < num_lines; ++line, to += kLine) {
        unrolled<kChunk>(TGI_UNROLLED(i) {
          __builtin_memcpy(to + i.value * kKeyStep, from[i.value] + line * steps[i.value],
                           kKeyStep);
        });
      }
    }
  }

  // Codes become bf16, scales lie side by side. Keys and values each when they are wanted, so that
  // they are still in the nearest cache.
  void decode_keys() {
    for (int64_t c = 0; c < num_chunks(); ++c) {
      const int64_t position = begin_ + c * kChunk;
      const int64_t next = position + kAhead;
      const std::byte* const keys = key_chunk(position);
      decode(keys, next <= last_ ? key_chunk(next) : keys, key_panel_bytes_,
             keys_ + c * key_panel_bytes_);
      if (!has_scales()) continue;
      take_scales(keys, key_panel_bytes_, c, key_scales_);
      if (block_.v != nullptr) {
        take_scales(value_chunk(position), value_chunk_bytes(), c, value_scales_);
      }
    }
  }
  void decode_values() {
    for (int64_t c = 0; c < num_chunks(); ++c) {
      const int64_t position = begin_ + c * kChunk;
      const int64_t next = position + kAhead;
      const std::byte* const values = value_chunk(position);
      std::byte* const decoded = values_ + c * value_chunk_bytes();
      decode(values, next <= last_ ? value_chunk(next) : values, value_chunk_bytes(), decoded);
      if (count_ - c * kChunk < kChunk) clear_values(decoded, count_ % kChunk);
    }
  }
  // 64 codes at a time; meanwhile those of `next`, and its scales, are fetched.
  void decode(const std::byte* codes, const std::byte* next, int64_t bytes, std::byte* out) const {
    const int64_t count = bytes / kElementBytes;
    if (has_scales()) {
      __builtin_prefetch(next + count, 0, kFetchLocality);
      for (int64_t i = 0; i < count; i += 64) {
        __builtin_prefetch(next + i, 0, kFetchLocality);
        V::decode_int8(codes + i, out + i * kElementBytes);
      }
    } else {
      for (int64_t i = 0; i < count; i += 64) {
        __builtin_prefetch(next + i, 0, kFetchLocality);
        V::decode_e4m3(codes + i, out + i * kElementBytes);
      }
    }
  }
  // Positions behind the last one have a scale of 0.
  void take_scales(const std::byte* stored, int64_t bytes, int64_t chunk, float* out) const {
    const V scales = V::load(reinterpret_cast<const float*>(stored + bytes / kElementBytes));
    V::select(V::first_lanes(count_ - chunk * kChunk), scales, V::zero())
        .store(out + chunk * kChunk);
  }

  // The values of the tile, which are columns of its keys: a panel of keys turned by 16 columns at
  // a time. Positions behind the last one are zeros.
  void take_values() {
    const int64_t chunk_bytes = value_chunk_bytes();
    for (int64_t c = 0; c < num_chunks(); ++c) {
      const std::byte* const keys = key_panel(c);
      std::byte* const values = values_ + c * chunk_bytes;
      const int64_t left = count_ - c * kChunk;
      if (left < kChunk || width_ != block_.value_dim) {
        __builtin_memset(values, 0, static_cast<size_t>(chunk_bytes));
      }
      int64_t d = 0;
      if constexpr (kDType != DType::kF32) {
        for (; left >= kChunk && d + 16 <= block_.value_dim; d += 16) turn_block(keys, d, values);
      }
      for (; d < block_.value_dim; ++d) turn_column(keys, d, left, values);
    }
  }

  // 16 columns from d on, of a chunk that is full.
  [[gnu::always_inline]] void turn_block(const std::byte* keys,
                                         int64_t d,
                                         std::byte* values) const {
    constexpr int64_t kColumns = kOrder == PairOrder::kEvenOdd ? kPairBlock : 16;
    BlockTurn<V, kDType, kOrder>::run(keys + d / kColumns * kColumns * kChunk * kElementBytes,
                                      d % kColumns != 0, values + d / 16 * kValuePanelBytes);
  }

  // Column d of a panel of keys becomes row d of the panels of values.
  [[gnu::always_inline]] void turn_column(const std::byte* keys,
                                          int64_t d,
                                          int64_t num_positions,
                                          std::byte* values) const {
    const std::byte* const from = keys + kKeyLayout.offset(0, d);
    std::byte* const to = values + d / 16 * kValuePanelBytes + d % 16 * kRowStep;
    unrolled<kChunk>(TGI_UNROLLED(i) {
      const int64_t position = i.value;
      if (position < num_positions) {
        __builtin_memcpy(to + kValueLayout.offset(0, position), from + position * kKeyStep,
                         kElementBytes);
      }
    });
  }

  static constexpr int64_t kAhead = kTilesAhead * kAttentionTile;  // positions
  static constexpr int64_t kElementBytes = kValueLayout.bits() / 8;
  static constexpr int64_t kScaleBytes = kChunk * 4;  // of int8
  // Of the panels of keys, for places in them, which don't hang on the columns.
  static constexpr PanelLayout kKeyLayout{.type = panel_type(kDType), .pair_order = kOrder};
  // To the next position, and to the next of 16 columns in a panel of values.
  static constexpr int64_t kKeyStep = kKeyLayout.offset(1, 0) - kKeyLayout.offset(0, 0);
  static constexpr int64_t kRowStep = kValueLayout.offset(1, 0) - kValueLayout.offset(0, 0);

  const AttentionBlock& block_;
  const int64_t width_;  // value_dim rounded up to 16
  const int64_t key_panel_bytes_;
  float* const key_scales_;
  float* const value_scales_;
  std::byte* const values_;
  std::byte* const keys_;
  int64_t begin_ = 0;
  int64_t count_ = 0;
  int64_t last_ = 0;
};

}  // namespace tgi
