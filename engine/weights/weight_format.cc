#include "engine/weights/weight_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tgi {

extern const WeightFormat kDenseFormat;

namespace {

constexpr std::array kFormats = {
    &kDenseFormat,
};

std::string quant_method(const JsonReader& config) {
  const JsonReader quantization = config.object("quantization_config");
  return quantization.string_or("quant_method", "(no quant_method)");
}

}  // namespace

std::span<const WeightFormat* const> weight_formats() {
  return kFormats;
}

const WeightFormat& find_weight_format(const JsonReader& config) {
  std::string known;
  for (const WeightFormat* format : kFormats) {
    if (format->claims(config)) return *format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format->name);
  }
  throw Error(Code::kUnsupported,
              fmt::format("quantization_config: quant_method '{}' is not supported; known are {}",
                          quant_method(config), known));
}

void check_stored_tensor(const StoredTensor& tensor,
                         std::span<const int64_t> expected,
                         WeightProblems& problems) {
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), expected.begin(), expected.end())) {
    problems.misshapen.push_back(fmt::format("{}: expected {}, got {}", tensor.name,
                                             shape_text(expected), shape_text(tensor.shape)));
  }
  if (!tensor.dtype) {
    problems.unsupported.push_back(
        fmt::format("{}: element type {}", tensor.name, tensor.dtype_name));
  }
}

}  // namespace tgi
