// int8, int4 and fp8 as compressed-tensors stores them: integers packed into words along the
// columns ("pack-quantized"), 8-bit floats as they are ("float-quantized"). Weights only:
// activations are left to whoever computes.
//
// Source: https://github.com/neuralmagic/compressed-tensors, its compressors and QuantizationArgs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/tensor/float8.h"
#include "engine/weights/weight_encoder.h"

namespace tgi {
namespace compressed_tensors_encoder {
namespace {

DType same_dtype(DType model_dtype) {
  return model_dtype;
}

template <int32_t kBits>
constexpr int64_t words_for(int64_t count) {
  return (count * kBits + 31) / 32;
}

template <int32_t kBits>
std::vector<EncodedArray> describe_packed(const EncodedShape& shape) {
  check_group_size(shape);
  const int64_t groups = shape.cols / shape.group_size;
  std::vector<EncodedArray> out;
  out.push_back({"weight_packed", "I32", {shape.rows, words_for<kBits>(shape.cols)}, {}});
  out.push_back({"weight_scale", safetensors_name(shape.model_dtype), {shape.rows, groups}, {}});
  out.push_back({"weight_shape", "I64", {2}, {}});
  if (shape.asymmetric) {
    out.push_back({"weight_zero_point", "I32", {words_for<kBits>(shape.rows), groups}, {}});
  }
  return out;
}

// Codes lie from the lowest bits of a word on, each + 2^(bits - 1).
template <int32_t kBits>
uint32_t packed_code(int8_t code, int64_t index) {
  constexpr int64_t kPerWord = 32 / kBits;
  const auto unsigned_code = static_cast<uint32_t>(code + (1 << (kBits - 1)));
  return unsigned_code << (index % kPerWord * kBits);
}

template <int32_t kBits>
std::vector<EncodedArray> encode_packed(const GroupedMatrix& matrix, DType model_dtype) {
  constexpr int64_t kPerWord = 32 / kBits;
  std::vector<EncodedArray> out =
      compressed_tensors_encoder::describe_packed<kBits>({.rows = matrix.rows,
                                                          .cols = matrix.cols,
                                                          .group_size = matrix.group_size,
                                                          .asymmetric = !matrix.zeros.empty(),
                                                          .model_dtype = model_dtype});
  const int64_t row_words = words_for<kBits>(matrix.cols);
  WordArray words(matrix.rows * row_words);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const int8_t* codes = matrix.codes.data() + row * matrix.cols;
    for (int64_t col = 0; col < matrix.cols; ++col) {
      words.add(row * row_words + col / kPerWord, packed_code<kBits>(codes[col], col));
    }
  }
  out[0].bytes = words.bytes();
  out[1].bytes = encode_floats_as(matrix.scales, model_dtype);
  const int64_t shape[2] = {matrix.rows, matrix.cols};
  out[2].bytes.resize(sizeof shape);
  std::memcpy(out[2].bytes.data(), shape, sizeof shape);
  if (matrix.zeros.empty()) return out;

  const int64_t groups = matrix.num_groups();
  WordArray zeros(words_for<kBits>(matrix.rows) * groups);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t group = 0; group < groups; ++group) {
      const int8_t zero = matrix.zeros[static_cast<size_t>(row * groups + group)];
      zeros.add(row / kPerWord * groups + group, packed_code<kBits>(zero, row));
    }
  }
  out[3].bytes = zeros.bytes();
  return out;
}

Json config_of(std::string_view format, Json weights, const EncodedModel& model) {
  weights["dynamic"] = false;
  weights["observer"] = "minmax";
  Json group = {{"targets", {"Linear"}},
                {"weights", std::move(weights)},
                {"input_activations", nullptr},
                {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"quantization_status", "compressed"},
          {"ignore", model.dense_modules},
          {"kv_cache_scheme", nullptr},
          {"global_compression_ratio", nullptr},
          {"config_groups", {{"group_0", std::move(group)}}}};
}

template <int32_t kBits>
Json packed_config(const EncodedModel& model) {
  Json weights = {{"num_bits", kBits},
                  {"type", "int"},
                  {"symmetric", !model.asymmetric},
                  {"strategy", model.group_size == 0 ? "channel" : "group"},
                  {"group_size", nullptr}};
  if (model.group_size != 0) weights["group_size"] = model.group_size;
  return config_of("pack-quantized", std::move(weights), model);
}

std::vector<EncodedArray> describe_floats(const EncodedShape& shape) {
  if (shape.group_size != 0 && shape.group_size != shape.cols) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("fp8 has one scale per row, group size {} does not apply", shape.group_size));
  }
  std::vector<EncodedArray> out;
  out.push_back({"weight", "F8_E4M3", {shape.rows, shape.cols}, {}});
  out.push_back({"weight_scale", safetensors_name(shape.model_dtype), {shape.rows, 1}, {}});
  return out;
}

// The largest value of a row becomes the largest of the format, or as near as a rounded scale
// allows.
std::vector<EncodedArray> encode_floats(std::span<const float> w,
                                        int64_t rows,
                                        int64_t cols,
                                        DType model_dtype) {
  std::vector<EncodedArray> out =
      describe_floats({.rows = rows, .cols = cols, .model_dtype = model_dtype});
  out[0].bytes.resize(w.size());
  std::vector<float> scales;
  for (int64_t row = 0; row < rows; ++row) {
    const float* values = w.data() + row * cols;
    float largest = 0.0F;
    for (int64_t col = 0; col < cols; ++col) largest = std::max(largest, std::fabs(values[col]));
    const float scale = round_to_dtype(model_dtype, largest / kLargestE4M3);
    scales.push_back(scale > 0.0F ? scale : 1.0F);
    for (int64_t col = 0; col < cols; ++col) {
      out[0].bytes[static_cast<size_t>(row * cols + col)] =
          std::byte{f32_to_e4m3(values[col] / scales.back())};
    }
  }
  out[1].bytes = encode_floats_as(scales, model_dtype);
  return out;
}

Json float_config(const EncodedModel& model) {
  return config_of(
      "float-quantized",
      {{"num_bits", 8}, {"type", "float"}, {"symmetric", true}, {"strategy", "channel"}}, model);
}

}  // namespace
}  // namespace compressed_tensors_encoder

template <>
const WeightEncoder& weight_encoder<"int8">() {
  static constexpr WeightEncoder kThis = {
      .name = "int8",
      .storage = "compressed-tensors pack-quantized",
      .bits = 8,
      .takes_floats = false,
      .per_row_scales = true,
      .asymmetric = true,
      .method = QuantizeMethod::kNearest,
      .writes_zero_points = false,
      .default_group_size = 0,
      .takes_conv1d = false,
      .scale_dtype = compressed_tensors_encoder::same_dtype,
      .describe = compressed_tensors_encoder::describe_packed<8>,
      .encode = compressed_tensors_encoder::encode_packed<8>,
      .encode_floats = nullptr,
      .quantization_config = compressed_tensors_encoder::packed_config<8>,
  };
  return kThis;
}

template <>
const WeightEncoder& weight_encoder<"int4">() {
  static constexpr WeightEncoder kThis = {
      .name = "int4",
      .storage = "compressed-tensors pack-quantized",
      .bits = 4,
      .takes_floats = false,
      .per_row_scales = true,
      .asymmetric = true,
      .method = QuantizeMethod::kNearest,
      .writes_zero_points = false,
      .default_group_size = 32,
      .takes_conv1d = false,
      .scale_dtype = compressed_tensors_encoder::same_dtype,
      .describe = compressed_tensors_encoder::describe_packed<4>,
      .encode = compressed_tensors_encoder::encode_packed<4>,
      .encode_floats = nullptr,
      .quantization_config = compressed_tensors_encoder::packed_config<4>,
  };
  return kThis;
}

template <>
const WeightEncoder& weight_encoder<"fp8">() {
  static constexpr WeightEncoder kThis = {
      .name = "fp8",
      .storage = "compressed-tensors float-quantized",
      .bits = 8,
      .takes_floats = true,
      .per_row_scales = true,
      .asymmetric = false,
      .method = QuantizeMethod::kNearest,
      .writes_zero_points = false,
      .default_group_size = 0,
      .takes_conv1d = false,
      .scale_dtype = compressed_tensors_encoder::same_dtype,
      .describe = compressed_tensors_encoder::describe_floats,
      .encode = nullptr,
      .encode_floats = compressed_tensors_encoder::encode_floats,
      .quantization_config = compressed_tensors_encoder::float_config,
  };
  return kThis;
}

}  // namespace tgi
