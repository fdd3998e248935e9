// Matrices stored as one plain array each: f32, f16 or bf16.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/formats/dense.h"
#include "engine/weights/formats/stored_arrays.h"
#include "engine/weights/weight_format.h"

namespace tgi {
namespace dense_format {
namespace {

bool claims(const JsonReader& config) {
  return !config.has("quantization_config");
}

StoredForm form_of(const Json& /*config*/, const MatrixSpec& /*spec*/) {
  return {};
}

}  // namespace
}  // namespace dense_format

std::vector<const StoredTensor*> collect_dense(const Checkpoint& checkpoint,
                                               const MatrixSpec& spec,
                                               WeightProblems& problems) {
  const StoredTensor* tensor = find_by_any_name(checkpoint, spec.name, spec.prefix);
  if (tensor == nullptr) {
    problems.missing.push_back(spec.name);
    return {};
  }
  const int64_t all_rows = spec.rows * spec.turns.count;
  std::vector<int64_t> shape = {spec.transposed ? spec.cols : all_rows,
                                spec.transposed ? all_rows : spec.cols};
  check_stored_tensor(*tensor, spec.stack.shape_of_all(shape), problems);
  return {tensor};
}

bool is_plain_choice(const Checkpoint& checkpoint,
                     const MatrixSpec& spec,
                     std::initializer_list<std::string_view> arrays) {
  if (!spec.is_choice) return false;
  const StoredTensor* tensor = find_by_any_name(checkpoint, spec.name, spec.prefix);
  if (tensor == nullptr || !tensor->dtype) return false;
  return std::ranges::none_of(arrays, [&](std::string_view array) {
    const std::string name = fmt::format("{}.{}", module_name(spec), array);
    return find_by_any_name(checkpoint, name, spec.prefix) != nullptr;
  });
}

HostWeight slice_dense(const Checkpoint& checkpoint,
                       const MatrixSpec& spec,
                       const StoredTensor& tensor,
                       Range rows,
                       Range cols) {
  const int64_t all_rows = spec.rows * spec.turns.count;
  const int64_t row_step = spec.transposed ? 1 : spec.cols;
  WeightPart part{.role = "weight",
                  .data = nullptr,
                  .dtype = *tensor.dtype,
                  .rows = rows.count,
                  .cols = cols.count,
                  .row_stride = row_step * spec.turns.count,
                  .col_stride = spec.transposed ? all_rows : 1};
  const int64_t first = spec.stack.index * all_rows * spec.cols + spec.turns.index * row_step +
                        rows.begin * part.row_stride + cols.begin * part.col_stride;
  if (const auto key = checkpoint.random_key(tensor)) {
    part.random = {.key = *key, .first_element = first};
  } else {
    part.data =
        checkpoint.bytes(tensor).data() + static_cast<size_t>(first) * dtype_size(*tensor.dtype);
  }
  return {.name = tensor.name,
          .format = "dense",
          .rows = rows.count,
          .cols = cols.count,
          .parts = {part}};
}

namespace dense_format {
namespace {

std::vector<const StoredTensor*> collect(const Json& /*config*/,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  return collect_dense(checkpoint, spec, problems);
}

HostWeight slice(const Json& /*config*/,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols,
                 const MatrixStorage& /*storage*/) {
  return slice_dense(checkpoint, spec, *tensors.front(), rows, cols);
}

}  // namespace
}  // namespace dense_format

template <>
const WeightFormat& weight_format<"dense">() {
  static constexpr WeightFormat kThis = {
      .name = "dense",
      .is_quantised = false,
      .claims = dense_format::claims,
      .form_of = dense_format::form_of,
      .collect = dense_format::collect,
      .slice = dense_format::slice,
      .may_ignore = nullptr,
  };
  return kThis;
}

}  // namespace tgi
