// The matrix unit: eight tiles of 16 rows of 64 bytes. As instructions, and in plain C++ with the
// same results bit for bit, so that what is built on it can be tested on any processor.
//
// Tiles 0 to 3 are sums. Of matmuls 4 and 5 hold rows of x, 6 and 7 lines of panels; sums 2i + j
// are those of x 4 + i and lines 6 + j. Of attention 4 holds queries and 6 a panel of keys, 5
// softmax weights and 7 a panel of values.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#if defined(__AMX_TILE__) || defined(__AMXTILE__)
#include <immintrin.h>
#endif

namespace tgi {

// As ldtilecfg reads it. Intel SDM volume 1, 18.3.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  // Tiles of x with x_row_bytes and of panels with as many lines as that needs.
  [[gnu::always_inline]] explicit TileConfig(int x_row_bytes) {
    for (int tile = 0; tile < 8; ++tile) {
      row_bytes[tile] = static_cast<uint16_t>(tile == 4 || tile == 5 ? x_row_bytes : 64);
      rows[tile] = static_cast<uint8_t>(tile < 6 ? 16 : x_row_bytes / 4);
    }
  }

  // Of attention, for as many query rows at once: panels of 32 columns of keys, or of the values of
  // 16 positions.
  [[gnu::always_inline]] static TileConfig of_attention(int query_rows) {
    TileConfig out(64);
    for (int tile = 0; tile < 6; ++tile) out.rows[tile] = static_cast<uint8_t>(query_rows);
    out.row_bytes[5] = 32;
    out.rows[7] = 8;
    return out;
  }
};
static_assert(sizeof(TileConfig) == 64);

#if defined(__AMX_TILE__) || defined(__AMXTILE__)
// The intrinsics want literal tile numbers, so that products are written with numbers as operands.
// In g++ 12 they are inline assembly that doesn't tell what memory it uses, hence the barriers; its
// _tile_loadconfig names 8 of the 64 bytes that ldtilecfg reads, so that the stores to the others
// may be dropped: the instruction stands here with its real operand.
class AmxUnit {
 public:
  explicit AmxUnit(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  ~AmxUnit() {
    _tile_release();
    _mm_sfence();  // lines that were streamed are seen before this task is
  }
  AmxUnit(const AmxUnit&) = delete;
  AmxUnit& operator=(const AmxUnit&) = delete;

  // Sixteen floats past the caches: the line needn't be read before it is written.
  static void stream_line(float* to, const float* from) {
    _mm512_stream_ps(to, _mm512_load_ps(from));
  }

  template <int kTile>
  void zero() {
    if constexpr (kTile == 0) _tile_zero(0);
    if constexpr (kTile == 1) _tile_zero(1);
    if constexpr (kTile == 2) _tile_zero(2);
    if constexpr (kTile == 3) _tile_zero(3);
    if constexpr (kTile == 4) _tile_zero(4);
    if constexpr (kTile == 5) _tile_zero(5);
    if constexpr (kTile == 6) _tile_zero(6);
    if constexpr (kTile == 7) _tile_zero(7);
  }
  template <int kTile>
  void load(const void* from, int64_t stride_bytes) {
    asm volatile("" : : : "memory");
    if constexpr (kTile == 0) _tile_loadd(0, from, stride_bytes);
    if constexpr (kTile == 1) _tile_loadd(1, from, stride_bytes);
    if constexpr (kTile == 2) _tile_loadd(2, from, stride_bytes);
    if constexpr (kTile == 3) _tile_loadd(3, from, stride_bytes);
    if constexpr (kTile == 4) _tile_loadd(4, from, stride_bytes);
    if constexpr (kTile == 5) _tile_loadd(5, from, stride_bytes);
    if constexpr (kTile == 6) _tile_loadd(6, from, stride_bytes);
    if constexpr (kTile == 7) _tile_loadd(7, from, stride_bytes);
  }
  // Of x, past the nearest cache: what else is there stays.
  template <int kTile>
  void load_once(const void* from, int64_t stride_bytes) {
    static_assert(kTile == 4 || kTile == 5);
    asm volatile("" : : : "memory");
    if constexpr (kTile == 4) _tile_stream_loadd(4, from, stride_bytes);
    if constexpr (kTile == 5) _tile_stream_loadd(5, from, stride_bytes);
  }
  template <int kTile>
  void store(void* to, int64_t stride_bytes) {
    if constexpr (kTile == 0) _tile_stored(0, to, stride_bytes);
    if constexpr (kTile == 1) _tile_stored(1, to, stride_bytes);
    if constexpr (kTile == 2) _tile_stored(2, to, stride_bytes);
    if constexpr (kTile == 3) _tile_stored(3, to, stride_bytes);
    if constexpr (kTile == 4) _tile_stored(4, to, stride_bytes);
    if constexpr (kTile == 5) _tile_stored(5, to, stride_bytes);
    if constexpr (kTile == 6) _tile_stored(6, to, stride_bytes);
    if constexpr (kTile == 7) _tile_stored(7, to, stride_bytes);
    asm volatile("" : : : "memory");
  }
  // Sums of f32 += x (pairs of bf16) . lines.
  template <int kSums>
  void dot_bf16() {
    dot<kSums, 4 + kSums / 2, 6 + kSums % 2>();
  }
  template <int kSums>
  void dot_keys() {
    dot<kSums, 4, 6>();
  }
  template <int kSums>
  void dot_values() {
    dot<kSums, 5, 7>();
  }
  // Sums of int32 += x . lines, both of signed bytes.
  template <int kSums>
  void dot_int8() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0"
                 :
                 : "i"(kSums), "i"(4 + kSums / 2), "i"(6 + kSums % 2));
  }

 private:
  template <int kSums, int kX, int kLines>
  static void dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kX), "i"(kLines));
  }
};
#endif

class EmulatedAmxUnit {
 public:
  explicit EmulatedAmxUnit(const TileConfig& config) : config_(config) {}

  static void stream_line(float* to, const float* from) { __builtin_memcpy(to, from, 64); }

  template <int kTile>
  void zero() {
    __builtin_memset(tiles_[kTile], 0, sizeof tiles_[kTile]);
  }
  template <int kTile>
  void load(const void* from, int64_t stride_bytes) {
    zero<kTile>();
    for (int row = 0; row < config_.rows[kTile]; ++row) {
      __builtin_memcpy(tiles_[kTile][row], static_cast<const std::byte*>(from) + row * stride_bytes,
                       config_.row_bytes[kTile]);
    }
  }
  template <int kTile>
  void load_once(const void* from, int64_t stride_bytes) {
    load<kTile>(from, stride_bytes);
  }
  template <int kTile>
  void store(void* to, int64_t stride_bytes) {
    for (int row = 0; row < config_.rows[kTile]; ++row) {
      __builtin_memcpy(static_cast<std::byte*>(to) + row * stride_bytes, tiles_[kTile][row],
                       config_.row_bytes[kTile]);
    }
  }
  template <int kSums>
  void dot_bf16() {
    dot<kSums, 4 + kSums / 2, 6 + kSums % 2>();
  }
  template <int kSums>
  void dot_keys() {
    dot<kSums, 4, 6>();
  }
  template <int kSums>
  void dot_values() {
    dot<kSums, 5, 7>();
  }
  template <int kSums, int kX, int kLines>
  void dot() {
    for (int row = 0; row < 16; ++row) {
      for (int col = 0; col < 16; ++col) {
        float even = 0.0F;
        float odd = 0.0F;
        for (int k = 0; k < config_.row_bytes[kX] / 4; ++k) {
          even = flush(std::fma(half<kX>(row, 2 * k), half<kLines>(k, 2 * col), even));
          odd = flush(std::fma(half<kX>(row, 2 * k + 1), half<kLines>(k, 2 * col + 1), odd));
        }
        float sum = 0.0F;
        std::byte* at = tiles_[kSums][row] + col * 4;
        __builtin_memcpy(&sum, at, sizeof sum);
        sum = flush(flush(sum) + flush(even + odd));
        __builtin_memcpy(at, &sum, sizeof sum);
      }
    }
  }
  template <int kSums>
  void dot_int8() {
    constexpr int kX = 4 + kSums / 2;
    constexpr int kLines = 6 + kSums % 2;
    for (int row = 0; row < 16; ++row) {
      for (int col = 0; col < 16; ++col) {
        int32_t sum = 0;
        std::byte* at = tiles_[kSums][row] + col * 4;
        __builtin_memcpy(&sum, at, sizeof sum);
        for (int k = 0; k < config_.row_bytes[kX]; ++k) {
          const auto x = static_cast<int8_t>(tiles_[kX][row][k]);
          sum += x * static_cast<int8_t>(tiles_[kLines][k / 4][col * 4 + k % 4]);
        }
        __builtin_memcpy(at, &sum, sizeof sum);
      }
    }
  }

 private:
  static float flush(float x) { return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; }
  template <int kTile>
  float half(int row, int index) const {
    uint16_t bits = 0;
    __builtin_memcpy(&bits, tiles_[kTile][row] + index * 2, sizeof bits);
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value = 0.0F;
    __builtin_memcpy(&value, &wide, sizeof value);
    return flush(value);
  }

  TileConfig config_;
  alignas(64) std::byte tiles_[8][16][64] = {};
};

}  // namespace tgi
