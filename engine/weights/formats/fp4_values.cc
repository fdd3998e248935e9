#include "engine/weights/formats/fp4_values.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "engine/tensor/float8.h"

namespace tgi {
namespace {

constexpr int32_t kNvfp4Bits = 6;  // -12 to 12

// Columns [begin, begin + count) of the line that begins at byte `from`.
void read_codes(const ArrayReader& codes, int64_t from, Range cols, int8_t* to) {
  for (int64_t i = 0; i < cols.count; ++i) {
    const int64_t col = cols.begin + i;
    const uint8_t both = codes.byte(from + col / 2);
    to[i] = kMxfp4Codes[col % 2 == 0 ? both & 15 : both >> 4];
  }
}

// The scales of codes that are twice the values.
class Fp4Scales {
 public:
  Fp4Scales(const Checkpoint& checkpoint, const Fp4Matrix& matrix)
      : reader_(checkpoint, matrix.scales),
        is_exponent_(matrix.scales.dtype_name == "U8"),
        matrix_scale_(matrix.matrix_scale) {}

  float at(int64_t index) const { return is_exponent_ ? power_of_two(index) : product(index); }

 private:
  float power_of_two(int64_t index) const {
    const uint8_t exponent = reader_.byte(index);
    if (exponent != 0xFF) return std::ldexp(1.0F, exponent - 128);
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: element {} is 255, which is no number but NaN; is the file "
                            "damaged?",
                            reader_.name(), index));
  }

  float product(int64_t index) const {
    const float own = e4m3_to_f32(reader_.byte(index));
    const auto& [value, divides] = matrix_scale_;
    const float scale = (divides ? own / value : own * value) * 0.5F;
    // 12 is the largest code.
    if (std::isfinite(scale * 12.0F)) return scale;
    throw Error(
        Code::kInvalidArgument,
        fmt::format("tensor {}: element {} is {}, which is no scale that gives finite "
                    "numbers (all are {} {}); is the file damaged?",
                    reader_.name(), index, own, divides ? "divided by" : "multiplied with", value));
  }

  ArrayReader reader_;
  bool is_exponent_;
  MatrixScale matrix_scale_;
};

}  // namespace

MatrixScale read_matrix_scale(const Checkpoint& checkpoint,
                              const StoredTensor& tensor,
                              bool divides) {
  const float value = ArrayReader(checkpoint, tensor).number(0);
  if (divides && value == 0.0F) {
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: is 0, but the scales of the matrix are divided by it; is "
                            "the file damaged?",
                            tensor.name));
  }
  return {.value = value, .divides = divides};
}

StoredForm nvfp4_form(std::string quantised_as) {
  return {
      .quantised_as = std::move(quantised_as), .bits = kNvfp4Bits, .group_size = kNvfp4GroupSize};
}

StoredForm mxfp4_form(std::string quantised_as) {
  return {.quantised_as = std::move(quantised_as),
          .bits = 4,
          .group_size = kMxfp4GroupSize,
          .is_mxfp4 = true};
}

HostWeight slice_fp4(const Checkpoint& checkpoint,
                     const MatrixSpec& spec,
                     const Fp4Matrix& matrix,
                     Range rows,
                     Range cols,
                     const MatrixStorage& storage) {
  const ArrayReader codes(checkpoint, matrix.codes);
  const Fp4Scales scales(checkpoint, matrix);
  DecodedBlock block(spec.name, rows, cols);
  const int64_t first_group = block.cut_groups(cols, matrix.group_size, false);
  const int64_t groups_of_line = matrix.cols / matrix.group_size;
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t line = matrix.first_line + (rows.begin + row) * matrix.line_step;
      read_codes(codes, line * matrix.cols / 2, cols, block.codes.data() + row * cols.count);
      for (int64_t group = 0; group < block.num_groups; ++group) {
        block.scales[static_cast<size_t>(row * block.num_groups + group)] =
            scales.at(line * groups_of_line + first_group + group);
      }
    }
  });
  return to_host_weight(std::move(block), storage);
}

}  // namespace tgi
