// 4-bit codes as AutoGPTQ stores them: transposed, eight rows of the transpose in a word. Symmetric
// matrices in its first layout, which everyone reads and which keeps zero points less one;
// asymmetric ones in the second (checkpoint_format gptq_v2), which keeps them as they are.
//
// Source: https://github.com/AutoGPTQ/AutoGPTQ (qlinear packing),
// https://github.com/ModelCloud/GPTQModel
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "engine/weights/weight_encoder.h"

namespace tgi {
namespace gptq_encoder {
namespace {

constexpr int64_t kPerWord = 8;
constexpr int32_t kOffset = 8;  // of the stored code to a signed one

DType half_scales(DType /*model_dtype*/) {
  return DType::kF16;
}

std::vector<EncodedArray> describe(const EncodedShape& shape) {
  check_group_size(shape);
  if (shape.rows % kPerWord != 0 || shape.cols % kPerWord != 0) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("gptq packs rows and columns by 8, got ({}, {})", shape.rows, shape.cols));
  }
  const int64_t groups = shape.cols / shape.group_size;
  std::vector<EncodedArray> out;
  out.push_back({"qweight", "I32", {shape.cols / kPerWord, shape.rows}, {}});
  out.push_back({"qzeros", "I32", {groups, shape.rows / kPerWord}, {}});
  out.push_back({"scales", "F16", {groups, shape.rows}, {}});
  out.push_back({"g_idx", "I32", {shape.cols}, {}});
  return out;
}

std::vector<EncodedArray> encode(const GroupedMatrix& matrix, DType model_dtype) {
  const bool symmetric = matrix.zeros.empty();
  std::vector<EncodedArray> out = describe({.rows = matrix.rows,
                                            .cols = matrix.cols,
                                            .group_size = matrix.group_size,
                                            .asymmetric = !symmetric,
                                            .model_dtype = model_dtype});
  const int64_t groups = matrix.num_groups();
  WordArray weights(matrix.cols / kPerWord * matrix.rows);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      const int code = matrix.codes[static_cast<size_t>(row * matrix.cols + col)] + kOffset;
      weights.add(col / kPerWord * matrix.rows + row, static_cast<uint32_t>(code)
                                                          << (col % kPerWord * 4));
    }
  }
  WordArray zeros(groups * (matrix.rows / kPerWord));
  std::vector<float> scales(static_cast<size_t>(groups * matrix.rows));
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const auto from = static_cast<size_t>(row * groups + group);
      scales[static_cast<size_t>(group * matrix.rows + row)] = matrix.scales[from];
      const int zero = symmetric ? kOffset - 1 : matrix.zeros[from] + kOffset;
      zeros.add(group * (matrix.rows / kPerWord) + row / kPerWord, static_cast<uint32_t>(zero)
                                                                       << (row % kPerWord * 4));
    }
  }
  WordArray g_idx(matrix.cols);
  for (int64_t col = 0; col < matrix.cols; ++col) {
    g_idx.add(col, static_cast<uint32_t>(col / matrix.group_size));
  }
  out[0].bytes = weights.bytes();
  out[1].bytes = zeros.bytes();
  out[2].bytes = encode_floats_as(scales, DType::kF16);
  out[3].bytes = g_idx.bytes();
  return out;
}

// Groups are contiguous whatever order the columns were quantised in, so desc_act is false.
Json quantization_config(const EncodedModel& model) {
  return {{"quant_method", "gptq"},
          {"bits", 4},
          {"group_size", model.group_size == 0 ? -1 : model.group_size},
          {"sym", !model.asymmetric},
          {"desc_act", false},
          {"static_groups", model.act_order},
          {"damp_percent", model.damping},
          {"lm_head", false},
          {"true_sequential", true},
          {"checkpoint_format", model.asymmetric ? "gptq_v2" : "gptq"}};
}

}  // namespace
}  // namespace gptq_encoder

template <>
const WeightEncoder& weight_encoder<"gptq">() {
  static constexpr WeightEncoder kThis = {
      .name = "gptq",
      .storage = "gptq",
      .bits = 4,
      .takes_floats = false,
      .per_row_scales = true,
      .asymmetric = true,
      .method = QuantizeMethod::kGptq,
      .writes_zero_points = false,
      .default_group_size = 128,
      .takes_conv1d = true,
      .scale_dtype = gptq_encoder::half_scales,
      .describe = gptq_encoder::describe,
      .encode = gptq_encoder::encode,
      .encode_floats = nullptr,
      .quantization_config = gptq_encoder::quantization_config,
  };
  return kThis;
}

}  // namespace tgi
