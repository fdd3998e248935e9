// Matrices stored as one plain array each: f32, f16 or bf16.
#include <array>

#include "engine/weights/weight_format.h"

namespace tgi {
namespace {

bool claims(const JsonReader& config) {
  return !config.has("quantization_config");
}

std::string_view format_of(const Json& /*config*/, std::string_view /*name*/) {
  return "dense";
}

std::vector<const StoredTensor*> collect(const Json& /*config*/,
                                         const Checkpoint& checkpoint,
                                         const MatrixSpec& spec,
                                         WeightProblems& problems) {
  const StoredTensor* tensor = find_by_any_name(checkpoint, spec.name, spec.prefix);
  if (tensor == nullptr) {
    problems.missing.push_back(spec.name);
    return {};
  }
  const std::array<int64_t, 2> shape = {spec.transposed ? spec.cols : spec.rows,
                                        spec.transposed ? spec.rows : spec.cols};
  check_stored_tensor(*tensor, shape, problems);
  return {tensor};
}

HostWeight slice(const Json& /*config*/,
                 const Checkpoint& checkpoint,
                 const MatrixSpec& spec,
                 std::span<const StoredTensor* const> tensors,
                 Range rows,
                 Range cols) {
  const StoredTensor& tensor = *tensors.front();
  WeightPart part{.role = "weight",
                  .data = nullptr,
                  .dtype = *tensor.dtype,
                  .rows = rows.count,
                  .cols = cols.count,
                  .row_stride = spec.transposed ? 1 : spec.cols,
                  .col_stride = spec.transposed ? spec.rows : 1};
  const int64_t first = rows.begin * part.row_stride + cols.begin * part.col_stride;
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

}  // namespace

extern const WeightFormat kDenseFormat;
constexpr WeightFormat kDenseFormat = {
    .name = "dense",
    .claims = claims,
    .format_of = format_of,
    .collect = collect,
    .slice = slice,
};

}  // namespace tgi
