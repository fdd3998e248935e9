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
  kFp4,     // value: twice the e2m1, so that it is an integer
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
// Whose matrices have neither minima nor scales of factors.
constexpr bool has_only_scales(PackedCodes codes) {
  return codes == PackedCodes::kF8E4M3 || codes == PackedCodes::kFp4;
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
  uint32_t table[4] = {};  // of kTable4 and kFp4: 16 bytes, each a value + 128

  // The following are made by plan(), so that kernels need not.
  uint8_t scale_shift = 0;  // the bytes of a scale or minimum, as a power of 2
  uint8_t float_shift = 0;  // from the bits of one that is not f16 to those of a float
  uint32_t scale_mask = ~0U;
  // So many units of a chunk, a power of 2, are of one group.
  int32_t units_together = 1;
  int32_t groups_of_chunk = 1;  // at most
  int32_t num_panels = 0;
  int32_t num_groups = 0;
  int32_t num_chunks = 0;
  int32_t num_factors = 0;
  // Where in a panel its scales begin, where from there their factors do, and where its minima do.
  int32_t scales_at = 0;
  int32_t factors_at = 0;
  int32_t minima_at = 0;
  int32_t panel_bytes = 0;

  // What tells one kind of packed matrix from others of its rows and columns; never 0.
  constexpr uint32_t kind() const {
    return 1U | static_cast<uint32_t>(codes) << 1 | static_cast<uint32_t>(scales) << 4 |
           static_cast<uint32_t>(has_minima) << 8 | static_cast<uint32_t>(group_size) << 9;
  }
  constexpr bool is_fine() const { return group_size == kFineGroup; }
  constexpr int64_t size_bytes() const { return int64_t{num_panels} * panel_bytes; }

  constexpr void plan() {
    const auto parts = [](int32_t whole, int32_t part) { return (whole + part - 1) / part; };
    const auto units = static_cast<uint32_t>(is_fine() ? 1 : group_size / kUnitCols);
    group_factor = ((1U << 16) + units - 1) / units;
    scale_shift = static_cast<uint8_t>(scale_bytes(scales) / 2);
    scale_mask = scale_shift == 2 ? ~0U : (1U << (8U << scale_shift)) - 1;
    float_shift = scales == PackedScales::kBF16 ? 16 : scales == PackedScales::kE8M0 ? 23 : 0;
    while (units_together < units_of_chunk(codes) && units % (2U * units_together) == 0) {
      units_together *= 2;
    }
    const int32_t of_chunk = units_of_chunk(codes) * kUnitCols;
    groups_of_chunk = parts(of_chunk, group_size) +
                      (of_chunk % group_size == 0 || group_size % of_chunk == 0 ? 0 : 1);
    num_panels = parts(outputs, kPanelOutputs);
    num_groups = parts(cols, group_size);
    num_chunks = parts(cols, of_chunk);
    num_factors = scales == PackedScales::kFactors ? parts(cols, kPackedFactorCols) : 0;
    scales_at = num_chunks * kChunkBytes * kPanelOutputs;
    factors_at = num_groups * kPanelOutputs * scale_bytes(scales);
    const int32_t numbers = factors_at + num_factors * 2 * kPanelOutputs;
    minima_at = scales_at + numbers;
    panel_bytes = parts(minima_at + (has_minima ? numbers : 0), 128) * 128;
  }

  // Of a unit, if groups are no smaller.
  constexpr int32_t coarse_group_of(int32_t unit) const {
    return static_cast<int32_t>(static_cast<uint32_t>(unit) * group_factor >> 16);
  }
  // Of 16 columns: the first or second half of a unit.
  constexpr int32_t group_of(int32_t unit, int32_t half) const {
    const int32_t group = is_fine() ? 2 * unit + half : coarse_group_of(unit);
    return group < num_groups ? group : num_groups - 1;  // past the end x is 0
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
  // (optional) packed_partials_bytes of f32: where CUDA blocks that share columns leave what they
  // have.
  float* partials = nullptr;
};
int64_t packed_partials_bytes(const PackedShape& shape);

inline constexpr int64_t kMaxPackedStreamRows = 64;

// Few rows: integers are multiplied as they are, sums of a group times its scale, in f32. Many: a
// tile of w is rounded to the type of x.
void launch_packed_matmul(cudaStream_t stream, const PackedLaunch& launch);

// Rows first_output.. of w as plain numbers, rounded once: out (any, cols), bf16 or f16.
// first_output: a multiple of kPanelOutputs; cols and out's stride: of 4.
struct PackedUnpackLaunch {
  PackedShape shape;
  const void* w = nullptr;
  int32_t first_output = 0;
  Tensor out;
};
void launch_packed_unpack(cudaStream_t stream, const PackedUnpackLaunch& launch);

// Whether launch_packed_unpack and a product with plain numbers may take its place.
bool may_unpack(const PackedLaunch& launch);

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
