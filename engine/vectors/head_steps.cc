#include "engine/vectors/head_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "engine/tensor/weight_element.h"

namespace tgi {
namespace {

// In one fixed order, with a few sums at once.
float dot(const float* x, const float* y, int64_t count) {
  constexpr int64_t kSums = 16;
  std::array<float, kSums> sums{};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t lane = 0; lane < kSums; ++lane) {
      sums[static_cast<size_t>(lane)] += x[i + lane] * y[i + lane];
    }
  }
  double total = 0.0;
  for (const float sum : sums) total += static_cast<double>(sum);
  for (; i < count; ++i) total += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return static_cast<float>(total);
}

float activate(HeadActivation kind, float x) {
  switch (kind) {
    case HeadActivation::kNone:
      return x;
    case HeadActivation::kTanh:
      return std::tanh(x);
    case HeadActivation::kGelu:
      return 0.5F * x * (1.0F + std::erf(x / std::sqrt(2.0F)));
    case HeadActivation::kRelu:
      return std::max(x, 0.0F);
  }
  return x;
}

void layer_norm(const DenseStep& step, std::vector<float>& x) {
  const auto count = static_cast<double>(x.size());
  double mean = 0.0;
  for (const float value : x) mean += static_cast<double>(value) / count;
  double squares = 0.0;
  for (const float value : x) {
    squares += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
  }
  const double inverse = 1.0 / std::sqrt(squares / count + static_cast<double>(step.norm_eps));
  for (size_t i = 0; i < x.size(); ++i) {
    const double value =
        (static_cast<double>(x[i]) - mean) * inverse * static_cast<double>(step.norm[i]);
    x[i] = static_cast<float>(value) + (step.norm_bias.empty() ? 0.0F : step.norm_bias[i]);
  }
}

}  // namespace

std::vector<float> DenseStep::apply(std::span<const float> in) const {
  TGI_CHECK(static_cast<int64_t>(in.size()) == cols);
  std::vector<float> out(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    const auto i = static_cast<size_t>(row);
    const float sum = dot(weight.data() + row * cols, in.data(), cols);
    out[i] = activate(activation, bias.empty() ? sum : sum + bias[i]);
  }
  if (!norm.empty()) layer_norm(*this, out);
  return out;
}

void normalise(std::span<float> x) {
  double squares = 0.0;
  for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
  const double length = std::max(std::sqrt(squares), 1e-12);
  for (float& value : x) value = static_cast<float>(static_cast<double>(value) / length);
}

void softmax(std::span<float> x) {
  const float highest = *std::ranges::max_element(x);
  double total = 0.0;
  for (float& value : x) {
    value = std::exp(value - highest);
    total += static_cast<double>(value);
  }
  for (float& value : x) value = static_cast<float>(static_cast<double>(value) / total);
}

void sigmoid(std::span<float> x) {
  for (float& value : x) value = 1.0F / (1.0F + std::exp(-value));
}

namespace {

void check_tensor(const StoredTensor* tensor,
                  std::string_view name,
                  std::span<const int64_t> shape) {
  if (tensor == nullptr) {
    throw Error(Code::kNotFound, fmt::format("the weights have no tensor {}", name));
  }
  const bool fits = std::ranges::equal(tensor->shape, shape, [](int64_t size, int64_t wanted) {
    return wanted < 0 || size == wanted;
  });
  if (!fits) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected the shape {}, got {}", tensor->name, shape_text(shape),
                            shape_text(tensor->shape)));
  }
  if (!tensor->dtype) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: the type {} is not supported", tensor->name, tensor->dtype_name));
  }
}

std::vector<float> read_elements_of(const Checkpoint& checkpoint,
                                    const StoredTensor& tensor,
                                    int64_t first,
                                    int64_t count) {
  WeightPart elements;
  elements.data = checkpoint.bytes(tensor).data();
  elements.dtype = *tensor.dtype;
  elements.row_stride = 1;
  std::vector<float> out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = first; i < first + count; ++i) out.push_back(weight_element(elements, i, 0));
  checkpoint.release(tensor);
  return out;
}

}  // namespace

std::vector<float> read_tensor(const Checkpoint& checkpoint,
                               const StoredTensor* tensor,
                               std::string_view name,
                               std::span<const int64_t> shape) {
  check_tensor(tensor, name, shape);
  return read_elements_of(checkpoint, *tensor, 0, tensor->num_elements());
}

std::vector<float> read_tensor_row(const Checkpoint& checkpoint,
                                   const StoredTensor* tensor,
                                   std::string_view name,
                                   std::span<const int64_t> shape,
                                   int64_t row) {
  check_tensor(tensor, name, shape);
  return read_elements_of(checkpoint, *tensor, row * shape.back(), shape.back());
}

}  // namespace tgi
