#include "engine/weights/weight_encoder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/known_names.h"
#include "engine/tensor/half.h"

namespace tgi {

namespace {

template <size_t... kIndex>
auto all_encoders(std::index_sequence<kIndex...>) {
  return std::array{&weight_encoder<Literal(kEncoderNames[kIndex])>()...};
}

}  // namespace

std::span<const WeightEncoder* const> weight_encoders() {
  static const auto kEncoders = all_encoders(std::make_index_sequence<kEncoderNames.size()>());
  return kEncoders;
}

const WeightEncoder& find_weight_encoder(std::string_view name) {
  for (const WeightEncoder* encoder : weight_encoders()) {
    if (encoder->name == name) return *encoder;
  }
  throw Error(Code::kInvalidArgument, fmt::format("format \"{}\" is not known; use one of {}", name,
                                                  fmt::join(kEncoderNames, ", ")));
}

float stored_scale(const WeightEncoder& encoder, DType model_dtype, float scale) {
  return round_to_dtype(encoder.scale_dtype(model_dtype), scale);
}

float round_to_dtype(DType dtype, float value) {
  if (dtype == DType::kBF16) return bf16_to_f32(f32_to_bf16(value));
  if (dtype == DType::kF16) return f16_to_f32(f32_to_f16(value));
  return value;
}

std::vector<std::byte> encode_floats_as(std::span<const float> values, DType dtype) {
  std::vector<std::byte> out(values.size() * dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const float value = values[i];
    if (!std::isfinite(round_to_dtype(dtype, value))) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("scale {} is {}, which {} can't hold", i, value, dtype_name(dtype)));
    }
    if (dtype == DType::kF32) {
      std::memcpy(out.data() + i * 4, &value, 4);
    } else {
      const uint16_t half = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
      std::memcpy(out.data() + i * 2, &half, 2);
    }
  }
  return out;
}

std::string safetensors_name(DType dtype) {
  return dtype == DType::kF32 ? "F32" : dtype == DType::kF16 ? "F16" : "BF16";
}

void check_group_size(const EncodedShape& shape) {
  if (shape.group_size > 0 && shape.cols % shape.group_size == 0) return;
  throw Error(Code::kInvalidArgument, fmt::format("group size {} does not divide the {} columns",
                                                  shape.group_size, shape.cols));
}

std::vector<std::byte> WordArray::bytes() const {
  std::vector<std::byte> out(words_.size() * sizeof(uint32_t));
  std::memcpy(out.data(), words_.data(), out.size());
  return out;
}

}  // namespace tgi
