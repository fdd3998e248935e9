// BitNet b1.58: weights of -1, 0 and 1 times one number for the matrix, as transformers stores
// them:
//   offline   weight U8 (out / 4, in), weight_scale. Row r is 2 bits of byte row r % (out / 4), the
//             lowest of those of the first quarter of the rows, each + 1. `bitlinear` divides by
//             weight_scale, `autobitlinear` multiplies with it, and may have weights unpacked
//   online    weight (out, in) of plain numbers, rounded here as there to multiples of the mean of
//             their magnitudes
// transformers rounds activations to int8 with one scale for a row, kernels here with one for each
// group of columns: less is lost.
//
// Source: https://github.com/huggingface/transformers, integrations/bitnet.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/known_fields.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace bitnet_format {
namespace {

constexpr int64_t kRowsOfByte = 4;
constexpr float kSmallestMean = 1e-5F;

constexpr auto kFields = std::to_array<KnownField>({
    read_or_null("quant_method"),
    read_or_null("modules_to_not_convert"),
    read_or_null("linear_class"),
    read_or_null("quantization_mode"),
    harmless_if("bits", "[2, 1.58]", "all weights are -1, 0 or 1"),
    harmless("rms_norm_eps", "goes with use_rms_norm"),
    harmless_if("use_rms_norm", "[false]", "every matrix would have a norm of its own before it"),
});

struct BitnetConfig {
  bool is_online = false;
  bool divides = false;  // by weight_scale
  std::vector<std::string> dense_modules{};
};

std::string one_of(const JsonReader& quantization,
                   const char* key,
                   std::array<const char*, 2> all) {
  const std::string value = quantization.string_or(key, all[0]);
  if (value == all[0] || value == all[1]) return value;
  throw Error(Code::kUnsupported,
              fmt::format("{}: bitnet with '{}' can't be loaded; supported: {}, {}",
                          quantization.path_of(key), value, all[0], all[1]));
}

BitnetConfig read_bitnet(const JsonReader& quantization) {
  BitnetConfig out;
  out.divides = one_of(quantization, "linear_class", {"bitlinear", "autobitlinear"}) == "bitlinear";
  const bool asks_online =
      one_of(quantization, "quantization_mode", {"offline", "online"}) == "online";
  out.is_online = asks_online && !out.divides;  // the other class has no such mode
  out.dense_modules = quantization.strings_or_empty("modules_to_not_convert");
  return out;
}

BitnetConfig read_bitnet(const Json& config) {
  return read_bitnet(quantization_of(config));
}

bool claims(const JsonReader& config) {
  if (quant_method_of(config) != "bitnet") return false;
  const JsonReader quantization = quantization_of(config);
  check_left_plain(read_bitnet(quantization).dense_modules);
  check_quantization_part(quantization, kFields, "bitnet");
  return true;
}

bool is_quantised(const BitnetConfig& bitnet, const MatrixSpec& spec) {
  return spec.kind == MatrixKind::kLayer && spec.stack.count == 0 &&
         !is_left_plain(bitnet.dense_modules, module_name(spec));
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  const BitnetConfig bitnet = read_bitnet(config);
  if (!is_quantised(bitnet, spec)) return {};
  return {.quantised_as = bitnet.is_online ? "bitnet, rounded to -1, 0 and 1" : "bitnet",
          .bits = 4};
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const BitnetConfig bitnet = read_bitnet(config);
  if (!is_quantised(bitnet, spec)) return collect_dense(checkpoint, spec, problems);
  ArrayCollector arrays(checkpoint, spec, problems);
  const std::vector<int64_t> plain = {spec.rows, spec.cols};
  if (bitnet.is_online) {
    arrays.require("weight", {"F32", "F16", "BF16"}, {plain});
    return arrays.take();
  }
  if (spec.rows % kRowsOfByte != 0) {
    problems.misshapen.push_back(
        fmt::format("{}: {} rows can't be packed by 4", spec.name, spec.rows));
    return {};
  }
  const std::vector<int64_t> packed = {spec.rows / kRowsOfByte, spec.cols};
  if (bitnet.divides) {
    arrays.require("weight", {"U8"}, {packed});
  } else {
    arrays.require("weight", {"U8", "F32", "F16", "BF16"}, {packed, plain});
  }
  arrays.require("weight_scale", {"F32", "F16", "BF16"}, {{}, {1}, {1, 1}});
  const std::vector<const StoredTensor*> found = arrays.take();
  const StoredTensor* weight = find_array(found, "weight");
  if (weight != nullptr && problems.empty() &&
      (weight->dtype_name == "U8") != (weight->shape == packed)) {
    problems.misshapen.push_back(fmt::format(
        "{}: {} of {}, expected {} of U8 or {} of numbers", weight->name, shape_text(weight->shape),
        weight->dtype_name, shape_text(packed), shape_text(plain)));
  }
  return found;
}

// The integers of one matrix, whatever it is stored as.
class Ternary {
 public:
  Ternary(const Checkpoint& checkpoint, const MatrixSpec& spec, const StoredTensor& tensor)
      : reader_(checkpoint, tensor),
        packed_(tensor.dtype_name == "U8"),
        rows_(spec.rows),
        cols_(spec.cols) {}

  // Rounds plain numbers to multiples of the mean of their magnitudes, which is returned.
  float round_by_mean() {
    std::vector<double> sums(static_cast<size_t>(rows_));
    decode_parallel(rows_, cols_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * cols_; i < end * cols_; ++i) {
        sums[static_cast<size_t>(i / cols_)] += std::abs(reader_.number(i));
      }
    });
    const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    const auto mean = static_cast<float>(sum / static_cast<double>(rows_ * cols_));
    factor_ = 1.0F / std::max(mean, kSmallestMean);
    is_rounded_ = true;
    return 1.0F / factor_;
  }

  int8_t at(int64_t row, int64_t col) const {
    return packed_ ? packed_at(row, col) : plain_at(row, col);
  }

 private:
  int8_t packed_at(int64_t row, int64_t col) const {
    const int64_t byte_rows = rows_ / kRowsOfByte;
    const uint8_t byte = reader_.byte(row % byte_rows * cols_ + col);
    const int code = byte >> (2 * (row / byte_rows)) & 3;
    if (code == 3) fail(row, col, 2.0F);
    return static_cast<int8_t>(code - 1);
  }

  int8_t plain_at(int64_t row, int64_t col) const {
    const float value = reader_.number(row * cols_ + col);
    if (is_rounded_) {
      return static_cast<int8_t>(std::clamp(std::nearbyint(value * factor_), -1.0F, 1.0F));
    }
    if (value != 0.0F && std::abs(value) != 1.0F) fail(row, col, value);
    return static_cast<int8_t>(value);
  }

  [[noreturn]] void fail(int64_t row, int64_t col, float value) const {
    throw Error(Code::kInvalidArgument,
                fmt::format("tensor {}: element ({}, {}) of the matrix is {}, expected -1, 0 or 1; "
                            "is the file damaged?",
                            reader_.name(), row, col, value));
  }

  ArrayReader reader_;
  bool packed_;
  int64_t rows_;
  int64_t cols_;
  bool is_rounded_ = false;
  float factor_ = 0.0F;
};

float read_scale(const Checkpoint& checkpoint, const StoredTensor& tensor, bool divides) {
  const float value = ArrayReader(checkpoint, tensor).number(0);
  const float scale = divides ? 1.0F / value : value;
  if (std::isfinite(scale)) return scale;
  throw Error(Code::kInvalidArgument,
              fmt::format("tensor {}: is {}, but the matrix is divided by it; is the file damaged?",
                          tensor.name, value));
}

HostWeight slice(const Json& config,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  const BitnetConfig bitnet = read_bitnet(config);
  if (!is_quantised(bitnet, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  Ternary codes(checkpoint, spec, *find_array(tensors, "weight"));
  const float scale =
      bitnet.is_online
          ? codes.round_by_mean()
          : read_scale(checkpoint, *find_array(tensors, "weight_scale"), bitnet.divides);
  DecodedBlock block(spec.name, rows, cols);
  (void)block.cut_groups(cols, 0, false);
  std::ranges::fill(block.scales, scale);
  decode_parallel(rows.count, cols.count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t col = 0; col < cols.count; ++col) {
        block.codes[static_cast<size_t>(row * cols.count + col)] =
            codes.at(rows.begin + row, cols.begin + col);
      }
    }
  });
  return to_host_weight(std::move(block), storage);
}

}  // namespace
}  // namespace bitnet_format

template <>
const WeightFormat& weight_format<"bitnet">() {
  static constexpr WeightFormat kThis = {
      .name = "bitnet",
      .claims = bitnet_format::claims,
      .form_of = bitnet_format::form_of,
      .collect = bitnet_format::collect,
      .slice = bitnet_format::slice,
  };
  return kThis;
}

}  // namespace tgi
