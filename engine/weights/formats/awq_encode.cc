// 4-bit codes as AutoAWQ stores them for its "gemm" kernel: transposed, eight columns of the
// transpose in a word, in an order of their own (awq_layout.h). Always with zero points.
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/weights/formats/awq_layout.h"
#include "engine/weights/weight_encoder.h"

namespace tgi {
namespace awq_encoder {
namespace {

constexpr int64_t kPerWord = 8;
constexpr int32_t kOffset = 8;  // of the stored code to a signed one

DType half_scales(DType /*model_dtype*/) {
  return DType::kF16;
}

std::vector<EncodedArray> describe(const EncodedShape& shape) {
  check_group_size(shape);
  if (shape.rows % kPerWord != 0) {
    throw Error(Code::kInvalidArgument, fmt::format("awq packs rows by 8, got {}", shape.rows));
  }
  const int64_t groups = shape.cols / shape.group_size;
  std::vector<EncodedArray> out;
  out.push_back({"qweight", "I32", {shape.cols, shape.rows / kPerWord}, {}});
  out.push_back({"qzeros", "I32", {groups, shape.rows / kPerWord}, {}});
  out.push_back({"scales", "F16", {groups, shape.rows}, {}});
  return out;
}

std::vector<EncodedArray> encode(const GroupedMatrix& matrix, DType model_dtype) {
  std::vector<EncodedArray> out = describe({.rows = matrix.rows,
                                            .cols = matrix.cols,
                                            .group_size = matrix.group_size,
                                            .asymmetric = true,
                                            .model_dtype = model_dtype});
  const int64_t groups = matrix.num_groups();
  const int64_t row_words = matrix.rows / kPerWord;
  const auto put = [row_words](WordArray& words, int64_t line, int64_t row, int value) {
    words.add(line * row_words + row / kPerWord, static_cast<uint32_t>(value)
                                                     << awq_shift(row % kPerWord));
  };
  WordArray weights(matrix.cols * row_words);
  WordArray zeros(groups * row_words);
  std::vector<float> scales(static_cast<size_t>(groups * matrix.rows));
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      put(weights, col, row, matrix.codes[static_cast<size_t>(row * matrix.cols + col)] + kOffset);
    }
    for (int64_t group = 0; group < groups; ++group) {
      const auto from = static_cast<size_t>(row * groups + group);
      put(zeros, group, row, (matrix.zeros.empty() ? 0 : matrix.zeros[from]) + kOffset);
      scales[static_cast<size_t>(group * matrix.rows + row)] = matrix.scales[from];
    }
  }
  out[0].bytes = weights.bytes();
  out[1].bytes = zeros.bytes();
  out[2].bytes = encode_floats_as(scales, DType::kF16);
  return out;
}

Json quantization_config(const EncodedModel& model) {
  Json dense = nullptr;
  if (!model.dense_modules.empty()) dense = model.dense_modules;
  return {{"quant_method", "awq"},
          {"bits", 4},
          {"group_size", model.group_size == 0 ? -1 : model.group_size},
          {"zero_point", true},
          {"version", "gemm"},
          {"modules_to_not_convert", dense}};
}

}  // namespace
}  // namespace awq_encoder

template <>
const WeightEncoder& weight_encoder<"awq">() {
  static constexpr WeightEncoder kThis = {
      .name = "awq",
      .storage = "awq gemm",
      .bits = 4,
      .takes_floats = false,
      .per_row_scales = true,
      .asymmetric = true,
      .method = QuantizeMethod::kAwq,
      .writes_zero_points = true,
      .default_group_size = 128,
      .takes_conv1d = false,
      .scale_dtype = awq_encoder::half_scales,
      .describe = awq_encoder::describe,
      .encode = awq_encoder::encode,
      .encode_floats = nullptr,
      .quantization_config = awq_encoder::quantization_config,
  };
  return kThis;
}

}  // namespace tgi
