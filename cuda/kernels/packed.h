// Matrices of small numbers in groups of columns, as the kernels read them: codes of 4 or 8 bits,
// a scale for each group of a row and, where there are zero points or minima, what is added.
//
//   w[r][c] = scales[r][g] * value(code[r][c]) + minima[r][g],   g = c / group_size
//
// A zero point is a minimum of -scale * zero. One layout serves every kernel; a matrix is packed
// into it once, on the host, while it is loaded (cuda/packed_matrix.h).
//
// A panel holds kPanelOutputs rows: first their codes, in chunks of 64 bytes a row, then scales
// (num_groups, 16), of kFactors with (num_factors, 16) of f16 behind them, and of the same form
// minima. Panels are panel_bytes() apart.
//
// Columns go in units of 32, of which lane t of a quad has 8: those that the tensor cores want from
// it in two mma of 16 columns each. In a chunk (units_of_chunk() of them) lie
//
//   (2 halves: rows 0-7, 8-15) (8 rows) (4 lanes t) (units of the chunk) (8 codes)
//
// so that a lane reads 16 bytes of a row with one load, and a warp 512 bytes in succession. Code e
// of a unit is column 16 * (e / 4) + 4 * t + e % 4 of it. Of 4 bits, the even ones are in the low
// half of a word and the odd ones in its high half. What is past the end of a row, or of the
// matrix, is 0 with a scale of 0 where there is no group.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/experts.h"
#include "cuda/kernels/step.h"
#include "engine/tensor/tensor.h"

namespace tgi::cuda {

inline constexpr int kPanelOutputs = 16;
inline constexpr int kUnitCols = 32;
inline constexpr int kChunkBytes = 64;  // of one row
inline constexpr int kFineGroup = 16;   // the one group size that is no multiple of kUnitCols

enum class PackedCodes : uint8_t {
  kInt4,    // value: code - PackedShape::offset
  kTable4,  // value: one of 16 integers of 8 bits
  kInt8,    // value: code - 128
  kF8E4M3,  // value: the 8-bit float
};
// kBF16: of integers that were rounded while loading. kE8M0: powers of two, by their exponent.
// kFactors: an integer of 8 bits times a number of f16 for each kPackedFactorCols columns; minima
// are the negative of such a product.
enum class PackedScales : uint8_t { kF32, kF16, kBF16, kE8M0, kFactors };
inline constexpr int kPackedFactorCols = 256;

constexpr int code_bits(PackedCodes codes) {
  return codes == PackedCodes::kInt8 || codes == PackedCodes::kF8E4M3 ? 8 : 4;
}
// Bytes of 8 codes.
constexpr int unit_bytes(PackedCodes codes) {
  return code_bits(codes);
}
constexpr int units_of_chunk(PackedCodes codes) {
  return kChunkBytes / 4 / unit_bytes(codes);
}
constexpr int scale_bytes(PackedScales scales) {
  switch (scales) {
    case PackedScales::kF32:
      return 4;
    case PackedScales::kF16:
    case PackedScales::kBF16:
      return 2;
    default:
      return 1;
  }
}

struct PackedShape {
  PackedCodes codes = PackedCodes::kInt8;
  PackedScales scales = PackedScales::kF32;
  bool has_minima = false;
  uint8_t offset = 8;  // of kInt4: 0 or 8
  int32_t outputs = 0;
  int32_t cols = 0;
  int32_t group_size = 0;  // kFineGroup or a multiple of kUnitCols
  // ceil(2^16 / units of a group): a unit's group is unit * group_factor >> 16.
  uint32_t group_factor = 0;
  uint32_t table[4] = {};  // of kTable4: 16 bytes, each a value + 128

  constexpr bool is_fine() const { return group_size == kFineGroup; }
  constexpr int32_t num_panels() const { return (outputs + kPanelOutputs - 1) / kPanelOutputs; }
  constexpr int32_t num_groups() const { return (cols + group_size - 1) / group_size; }
  constexpr int32_t num_chunks() const {
    const int32_t chunk_cols = units_of_chunk(codes) * kUnitCols;
    return (cols + chunk_cols - 1) / chunk_cols;
  }
  constexpr int32_t num_factors() const {
    return (cols + kPackedFactorCols - 1) / kPackedFactorCols;
  }
  // Where in a panel its scales begin, where from there their factors do, and where its minima do.
  constexpr int64_t scales_at() const {
    return int64_t{num_chunks()} * kChunkBytes * kPanelOutputs;
  }
  constexpr int64_t factors_at() const {
    return int64_t{num_groups()} * kPanelOutputs * scale_bytes(scales);
  }
  constexpr int64_t minima_at() const {
    const int64_t factors = scales == PackedScales::kFactors ? num_factors() * 2 : 0;
    return scales_at() + factors_at() + factors * kPanelOutputs;
  }
  constexpr int64_t panel_bytes() const {
    const int64_t used = minima_at() + (has_minima ? minima_at() - scales_at() : 0);
    return (used + 127) / 128 * 128;
  }
  constexpr int64_t size_bytes() const { return num_panels() * panel_bytes(); }

  // Of 16 columns: the first or second half of a unit.
  constexpr int32_t group_of(int32_t unit, int32_t half) const {
    const int32_t group =
        is_fine() ? 2 * unit + half
                  : static_cast<int32_t>(static_cast<uint32_t>(unit) * group_factor >> 16);
    return group < num_groups() ? group : num_groups() - 1;  // past the end x is 0
  }
};

// So that group_of is exact.
inline constexpr int64_t kMaxPackedCols = int64_t{1} << 17;
inline constexpr int32_t kMaxPackedGroup = 256;

// out = x w^T + bias, of one matrix or of experts.
struct PackedLaunch {
  PackedShape shape;
  const void* w = nullptr;
  const float* bias = nullptr;  // (optional) (outputs)
  Tensor x;                     // bf16 or f16
  Tensor out;                   // of that type or f32
  // The bits of a row of out depend on neither the other rows nor their number.
  bool one_kernel = false;
};

// Few rows: integers are multiplied as they are, sums of a group times its scale, in f32. Many: a
// tile of w is rounded to the type of x.
void launch_packed_matmul(cudaStream_t stream, const PackedLaunch& launch);

// `experts` point to matrices of that shape; else as launch_expert_matmul.
void launch_packed_experts(cudaStream_t stream,
                           const PackedShape& shape,
                           const ExpertMatmulLaunch& launch,
                           const ExpertRoutes& routes);

// Once for a GPU, before the first launch.
void prepare_packed_kernels();

// out = multiplier * the row of each token, or of its position; `adds`: to what out holds.
struct PackedEmbedLaunch {
  PackedShape shape;
  const void* table = nullptr;
  const int32_t* token_ids = nullptr;  // null: by position
  const TokenRow* rows = nullptr;
  float multiplier = 1.0F;
  bool adds = false;
  Tensor out;
};
void launch_packed_embed(cudaStream_t stream, const PackedEmbedLaunch& launch);

}  // namespace tgi::cuda
