// A weight on its way from a checkpoint to a device, and what the device makes of it.
//
// All matrices are (out_features, in_features), used as y = x W^T; a checkpoint that stores the
// transpose says so by its strides. However a checkpoint stores its matrices, a device sees one of
// two formats: "dense", one array of numbers, or "grouped", small integers with a scale for each
// group of columns of a row. What a storage format decodes on the way is owned by the HostWeight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/random_weights.h"
#include "engine/tensor/tensor.h"

namespace tgi {

// One stored array, still in the checkpoint's bytes. Does not own.
struct WeightPart {
  std::string_view role;  // which of its format's arrays it is; "weight" for a dense matrix
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;              // in elements
  int64_t col_stride = 1;              // in elements; not 1 in a transposed matrix
  std::optional<RandomPart> random{};  // (optional) no data: the device makes the numbers itself
};

// What scales and minima are made of where a checkpoint quantises them too: a number for each
// kFactorCols columns of a row, from the matrix's first on, times an integer for each group.
//   scales[r][g] = block_scales[r][b] * group_scales[r][g],   b = g * group_size / kFactorCols
//   minima[r][g] = -(block_minima[r][b] * group_minima[r][g])
inline constexpr int64_t kFactorCols = 256;

struct ScaleFactors {
  const float* block_scales = nullptr;   // (rows, num_blocks), numbers of f16; null: none of these
  const int8_t* group_scales = nullptr;  // (rows, num_groups)
  const float* block_minima = nullptr;   // (optional) as block_scales
  const int8_t* group_minima = nullptr;  // (optional) as group_scales
};

// Integers of 4 or 8 bits, or the codes of mxfp4 or e4m3, in groups of columns. Does not own.
//   w[r][c] = scales[r][g] * (codes[r][c] - zeros[r][g]) + minima[r][g],   g = c / group_size
// With minima there are no zeros, and codes of 4 bits are 0 to 15. With a table there are neither:
//   w[r][c] = scales[r][g] * table[codes[r][c]]
struct GroupedPart {
  const int8_t* codes = nullptr;  // (rows, cols); of int4 -8 to 7; of e4m3 its bits, finite
  const float* scales = nullptr;  // (rows, num_groups), finite; of mxfp4 powers of two
  const int8_t* zeros = nullptr;  // (optional) as scales, in the range of codes; null: all 0
  const float* minima = nullptr;  // (optional) as scales
  ScaleFactors factors{};         // (optional) of scales and minima
  const float* table = nullptr;   // (optional) (16) of value_table: codes are places in it
  int64_t group_size = 0;         // the last group may have fewer columns
  int64_t num_groups = 0;
};

// One matrix (or a part of a fused one) as its format stores it.
struct HostWeight {
  std::string name;         // of the tensor in the checkpoint, for messages
  std::string_view format;  // "dense" or "grouped": the device looks its kernel up by it, once
  int64_t rows = 0;         // out_features
  int64_t cols = 0;         // in_features
  std::vector<WeightPart> parts{};      // dense: one
  GroupedPart grouped{};                // grouped
  std::shared_ptr<const void> owner{};  // (optional) of what was decoded for this block
};

// How a device is to hold a dense matrix: rounded to a float type, or to integers of a few bits
// with a scale for each group of columns of a row. With integers the device also rounds the
// activations that it multiplies with, to int8 with a scale per row and group.
//
// The first three can be asked for, the others only come out of checkpoints. kMxfp4: 4 bits of e2m1
// in groups of 32, whose scales are powers of two of one byte; its codes are twice the values: -12,
// -8, -6, -4 to 4, 6, 8, 12. kIq4: 4 bits that stand for one of kIq4Codes. kF8E4M3: 8-bit floats;
// what is multiplied with is the value of the code. kNf4, kFp4: 4 bits that stand for one of
// kNf4Values, kFp4Values; devices may round these to 7 bits and a sign, as they do x.
enum class Quantization : uint8_t {
  kNone,
  kInt8,
  kInt4,
  kMxfp4,
  kInt6,
  kInt5,
  kIq4,
  kF8E4M3,
  kNf4,
  kFp4,
};

inline constexpr std::string_view kQuantizationNames[] = {"none", "int8", "int4",   "mxfp4", "int6",
                                                          "int5", "iq4",  "f8e4m3", "nf4",   "fp4"};

inline constexpr int32_t kMxfp4GroupSize = 32;
inline constexpr int8_t kMxfp4Codes[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
// Of ggml's IQ4_NL and IQ4_XS.
inline constexpr int8_t kIq4Codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

// Of bitsandbytes. Quantiles of the normal distribution; and a sign, two bits of exponent and one
// of mantissa, the largest scaled to 1.
inline constexpr float kNf4Values[16] = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};
inline constexpr float kFp4Values[16] = {
    0.0F,          0.0625F / 12.0F,  8.0F / 12.0F,  1.0F,
    4.0F / 12.0F,  6.0F / 12.0F,     2.0F / 12.0F,  3.0F / 12.0F,
    0.0F,          -0.0625F / 12.0F, -8.0F / 12.0F, -1.0F,
    -4.0F / 12.0F, -6.0F / 12.0F,    -2.0F / 12.0F, -3.0F / 12.0F,
};

// Of codes that are places in it; null: they are numbers.
constexpr const float* value_table(Quantization quantization) {
  if (quantization == Quantization::kNf4) return kNf4Values;
  return quantization == Quantization::kFp4 ? kFp4Values : nullptr;
}

// Of a stored integer; those of mxfp4 and iq4 are numbers of codes. With minima the integers of
// less than 8 bits are not below 0.
constexpr int integer_bits(Quantization quantization) {
  switch (quantization) {
    case Quantization::kInt5:
      return 5;
    case Quantization::kInt6:
      return 6;
    case Quantization::kInt4:
    case Quantization::kMxfp4:
    case Quantization::kIq4:
    case Quantization::kNf4:
    case Quantization::kFp4:
      return 4;
    default:
      return 8;
  }
}

constexpr std::string_view quantization_name(Quantization quantization) {
  return kQuantizationNames[static_cast<int>(quantization)];
}

constexpr std::optional<Quantization> quantization_from_name(std::string_view name) {
  for (const Quantization one : {Quantization::kNone, Quantization::kInt8, Quantization::kInt4}) {
    if (quantization_name(one) == name) return one;
  }
  return std::nullopt;
}

// What scales of stored integers, and their minima, can be held as without a loss.
enum class ScaleForm : uint8_t { kF32, kF16, kFactors };

struct MatrixStorage {
  DType dtype = DType::kBF16;  // of a matrix that is not quantised
  Quantization quantization = Quantization::kNone;
  int32_t group_size = 0;  // columns, a multiple of 32 up to 256 (16 too if stored); of integers
  // The integers are those of the checkpoint (format "grouped"): their scales stay what they
  // are, and zero points come with them where they have any. A device without kernels for them
  // computes their values, rounded once to `dtype`.
  bool stored = false;
  bool zero_points = false;
  bool minima = false;                 // stored ones come with them
  ScaleForm scales = ScaleForm::kF32;  // of stored ones, but for mxfp4

  constexpr MatrixStorage() = default;
  constexpr MatrixStorage(DType type) : dtype(type) {}  // NOLINT: a dense matrix
  constexpr MatrixStorage(Quantization kind, int32_t group)
      : quantization(kind), group_size(group) {}

  // What a matrix of this storage is given to the device as.
  constexpr std::string_view format() const { return stored ? "grouped" : "dense"; }
  constexpr bool operator==(const MatrixStorage&) const = default;
};

// A matrix in the layout that its device's kernels want. Immutable; shared by all steps. Only the
// device that made it knows what is inside.
class Matrix {
 public:
  virtual ~Matrix() = default;
  int64_t rows = 0;  // out_features
  int64_t cols = 0;  // in_features
  int64_t size_bytes = 0;
};

}  // namespace tgi
