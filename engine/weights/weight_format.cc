#include "engine/weights/weight_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/known_names.h"

namespace tgi {

namespace {

template <size_t... kIndex>
auto all_formats(std::index_sequence<kIndex...>) {
  return std::array{&weight_format<"dense">(),
                    &weight_format<Literal(kWeightFormatNames[kIndex])>()...};
}

std::string quant_method(const JsonReader& config) {
  const JsonReader quantization = config.object("quantization_config");
  return quantization.string_or("quant_method", "(no quant_method)");
}

}  // namespace

std::span<const WeightFormat* const> weight_formats() {
  static const auto kFormats = all_formats(std::make_index_sequence<kWeightFormatNames.size()>());
  return kFormats;
}

const WeightFormat& find_weight_format(const JsonReader& config) {
  std::string known;
  for (const WeightFormat* format : weight_formats()) {
    if (format->claims(config)) return *format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format->name);
  }
  throw Error(Code::kUnsupported,
              fmt::format("quantization_config: quant_method '{}' can't be loaded; supported: {}; "
                          "or take the model as it was before and --quantize it",
                          quant_method(config), known));
}

StoredForm common_form(std::span<const StoredForm> forms) {
  StoredForm out = forms.front();
  for (const StoredForm& form : forms) {
    // Zero points and codes of floats mean nothing beside other integers; one group per row has no
    // size here.
    if (form.bits == 0 || form.zero_points || form.group_size == 0) return {};
    if (form.is_mxfp4 || form.is_f8 || form.table != Quantization::kNone) return {};
    out.minima = out.minima || form.minima;
    if (form.scales != out.scales) out.scales = ScaleForm::kF32;
    out.group_size = std::gcd(out.group_size, form.group_size);
  }
  out.bits = 8;
  out.is_iq4 = false;
  return out;
}

static Quantization quantization_of(const StoredForm& form) {
  if (form.is_mxfp4) return Quantization::kMxfp4;
  if (form.is_iq4) return Quantization::kIq4;
  if (form.is_f8) return Quantization::kF8E4M3;
  if (form.table != Quantization::kNone) return form.table;
  switch (form.bits) {
    case 4:
      return Quantization::kInt4;
    case 5:
      return Quantization::kInt5;
    case 6:
      return Quantization::kInt6;
    default:
      return Quantization::kInt8;
  }
}

MatrixStorage storage_of(const StoredForm& form, Range cols, DType dtype, KeptForms keeps) {
  MatrixStorage out(dtype);
  const bool is_table = form.table != Quantization::kNone;
  if (form.bits == 0 || (form.is_f8 && !keeps.f8) || (is_table && !keeps.tables)) return out;
  // The devices round activations by the same groups: not too large ones.
  constexpr int64_t kLargest = 128;
  const int64_t shared = form.group_size == 0 ? kLargest : std::gcd(form.group_size, cols.begin);
  int64_t group_size = kLargest;
  while (group_size > 0 && shared % group_size != 0) group_size -= 32;
  constexpr int64_t kSmallest = 16;  // of those that are stored so
  if (form.group_size == kSmallest && shared == kSmallest) group_size = kSmallest;
  if (group_size == 0) return out;
  out.quantization = quantization_of(form);
  out.group_size = static_cast<int32_t>(group_size);
  out.stored = true;
  out.zero_points = form.zero_points;
  out.minima = form.minima;
  // The numbers of a row's blocks are for columns from the matrix's first on.
  const bool is_cut = form.scales == ScaleForm::kFactors && cols.begin % kFactorCols != 0;
  out.scales = is_cut ? ScaleForm::kF32 : form.scales;
  return out;
}

int64_t read_group_size(const JsonReader& quantization, std::string_view key, int64_t fallback) {
  // No matrix has more columns, and sums with it do not overflow.
  constexpr int64_t kLargest = int64_t{1} << 31;
  const int64_t group_size = quantization.integer_or(key, fallback);
  if (group_size == 0 || group_size < -1) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected -1 for one group per row, or a number of columns, got {}",
                            quantization.path_of(key), group_size));
  }
  return group_size == -1 ? 0 : std::min(group_size, kLargest);
}

void check_stored_shape(const StoredTensor& tensor,
                        std::span<const int64_t> expected,
                        WeightProblems& problems) {
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), expected.begin(), expected.end())) {
    problems.misshapen.push_back(fmt::format("{}: expected {}, got {}", tensor.name,
                                             shape_text(expected), shape_text(tensor.shape)));
  }
}

void check_stored_tensor(const StoredTensor& tensor,
                         std::span<const int64_t> expected,
                         WeightProblems& problems) {
  check_stored_shape(tensor, expected, problems);
  if (!tensor.dtype) {
    problems.unsupported.push_back(
        fmt::format("{}: element type {}", tensor.name, tensor.dtype_name));
  }
}

}  // namespace tgi
