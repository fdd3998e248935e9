// MXFP4 as gpt-oss publishes it: the matrices of experts, all of a layer in one tensor, rows in
// blocks of 32 numbers of 4 bits (e2m1) times a power of two:
//   NAME_blocks  U8 (experts, out, in / 32, 16)  a byte holds two numbers, the first in the low
//   half NAME_scales  U8 (experts, out, in / 32)      e8m0: the exponent + 127
// However NAME itself lies in a plain checkpoint, rows are outputs here. All else is plain.
//
// Source: https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf;
// integrations/mxfp4 of `transformers`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/known_fields.h"
#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/fp4_values.h"
#include "engine/weights/formats/module_names.h"
#include "engine/weights/formats/quantization_fields.h"
#include "engine/weights/formats/stored_arrays.h"

namespace tgi {
namespace mxfp4_format {
namespace {

constexpr int64_t kBlockCols = kMxfp4GroupSize;
constexpr int64_t kBlockBytes = kBlockCols / 2;

constexpr auto kFields = std::to_array<KnownField>({
    read_or_null("modules_to_not_convert"),
    harmless("dequantize", "the numbers are the same, decoded or not"),
});

bool claims(const JsonReader& config) {
  if (quant_method_of(config) != "mxfp4") return false;
  const JsonReader quantization = quantization_of(config);
  check_left_plain(quantization.strings_or_empty("modules_to_not_convert"));
  check_quantization(quantization, kFields, "mxfp4");
  return true;
}

bool is_quantised(const Json& config, const MatrixSpec& spec) {
  if (spec.kind != MatrixKind::kLayer || spec.stack.count == 0) return false;
  const std::vector<std::string> plain =
      quantization_of(config).strings_or_empty("modules_to_not_convert");
  return !is_left_plain(plain, module_name(spec));
}

StoredForm form_of(const Json& config, const MatrixSpec& spec) {
  if (!is_quantised(config, spec)) return {};
  return mxfp4_form("mxfp4");
}

std::vector<int64_t> scales_shape(const MatrixSpec& spec) {
  return {spec.stack.count, spec.rows * spec.turns.count, spec.cols / kBlockCols};
}

std::vector<int64_t> blocks_shape(const MatrixSpec& spec) {
  std::vector<int64_t> shape = scales_shape(spec);
  shape.push_back(kBlockBytes);
  return shape;
}

std::vector<const StoredTensor*> collect(const Json& config,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  if (!is_quantised(config, spec)) return collect_dense(checkpoint, spec, problems);
  if (spec.cols % kBlockCols != 0) {
    problems.misshapen.push_back(
        fmt::format("{}: {} columns can't be in blocks of {}", spec.name, spec.cols, kBlockCols));
    return {};
  }
  ArrayCollector arrays(checkpoint, spec, problems, "_");
  arrays.require("blocks", {"U8"}, {blocks_shape(spec)});
  arrays.require("scales", {"U8"}, {scales_shape(spec)});
  return arrays.take();
}

std::vector<RandomArray> random_arrays(const Json& config, const MatrixSpec& spec) {
  if (!is_quantised(config, spec)) return {};
  constexpr uint8_t kSmall = 127 - 8;  // numbers of up to 6 / 256
  const std::string name(module_name(spec));
  return {{.name = name + "_blocks", .shape = blocks_shape(spec)},
          {.name = name + "_scales", .shape = scales_shape(spec), .all = kSmall}};
}

HostWeight slice(const Json& config,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& storage) {
  if (!is_quantised(config, spec)) {
    return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
  }
  const Fp4Matrix matrix = {.codes = *tensors[0],
                            .scales = *tensors[1],
                            .cols = spec.cols,
                            .group_size = kBlockCols,
                            .first_line = stored_row(spec, 0),
                            .line_step = spec.turns.count};
  return slice_fp4(checkpoint, spec, matrix, rows, cols, storage);
}

}  // namespace
}  // namespace mxfp4_format

template <>
const WeightFormat& weight_format<"mxfp4">() {
  static constexpr WeightFormat kThis = {
      .name = "mxfp4",
      .claims = mxfp4_format::claims,
      .form_of = mxfp4_format::form_of,
      .collect = mxfp4_format::collect,
      .slice = mxfp4_format::slice,
      .random_arrays = mxfp4_format::random_arrays,
  };
  return kThis;
}

}  // namespace tgi
