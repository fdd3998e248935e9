#include "engine/weights/formats/gguf_latent.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "engine/weights/formats/stored_arrays.h"
#include "engine/weights/ggml/ggml_types.h"

namespace tgi {
namespace {

constexpr std::string_view kKeyMark = "(k)";

std::vector<float> decode_head(const Checkpoint& checkpoint,
                               const StoredTensor& tensor,
                               int64_t head) {
  const GgmlType& type = *find_ggml_type(tensor.dtype_name);
  const int64_t num_blocks = tensor.shape[1] * tensor.shape[2] / type.block_size;
  std::vector<float> out(static_cast<size_t>(num_blocks * type.block_size));
  type.decode(checkpoint.bytes(tensor).data() + head * num_blocks * type.block_bytes, num_blocks,
              out.data());
  return out;
}

}  // namespace

std::vector<const StoredTensor*> collect_latent_up(const Checkpoint& checkpoint,
                                                   const MatrixSpec& spec,
                                                   const std::string& key_name,
                                                   const std::string& value_name,
                                                   WeightProblems& problems) {
  const StoredTensor* const keys = find_by_any_name(checkpoint, key_name, spec.prefix);
  const StoredTensor* const values = find_by_any_name(checkpoint, value_name, spec.prefix);
  if (keys == nullptr || values == nullptr) return {};
  const bool fits = keys->shape.size() == 3 && values->shape.size() == 3 &&
                    keys->shape[0] == values->shape[0] && keys->shape[1] == spec.cols &&
                    values->shape[2] == spec.cols &&
                    keys->shape[0] * (keys->shape[2] + values->shape[1]) == spec.rows;
  if (!fits) {
    problems.misshapen.push_back(fmt::format(
        "{} and {}: expected the parts of ({}, {}), got {} and {}", keys->name, values->name,
        spec.rows, spec.cols, shape_text(keys->shape), shape_text(values->shape)));
  }
  for (const StoredTensor* tensor : {keys, values}) {
    const GgmlType* type = find_ggml_type(tensor->dtype_name);
    if (type != nullptr && type->decode != nullptr) continue;
    problems.unsupported.push_back(
        fmt::format("{}: element type {}", tensor->name, tensor->dtype_name));
  }
  return {keys, values};
}

bool is_latent_up(std::span<const StoredTensor* const> tensors) {
  return tensors.size() == 2 && tensors[0]->name.find(kKeyMark) != std::string::npos;
}

HostWeight slice_latent_up(const Checkpoint& checkpoint,
                           const MatrixSpec& spec,
                           std::span<const StoredTensor* const> tensors,
                           Range rows,
                           Range cols) {
  const int64_t key_rows = tensors[0]->shape[2];
  const int64_t head_rows = key_rows + tensors[1]->shape[1];
  ScratchVector<float> out(static_cast<size_t>(rows.count * cols.count));
  std::vector<float> keys;
  std::vector<float> values;
  int64_t decoded_head = -1;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t head = (rows.begin + i) / head_rows;
    const int64_t row = (rows.begin + i) % head_rows;
    if (head != decoded_head) {
      keys = decode_head(checkpoint, *tensors[0], head);
      values = decode_head(checkpoint, *tensors[1], head);
      decoded_head = head;
    }
    for (int64_t j = 0; j < cols.count; ++j) {
      const int64_t col = cols.begin + j;
      const bool is_key = row < key_rows;
      const int64_t at = is_key ? col * key_rows + row : (row - key_rows) * spec.cols + col;
      out[static_cast<size_t>(i * cols.count + j)] =
          (is_key ? keys : values)[static_cast<size_t>(at)];
    }
  }
  return to_host_weight(spec.name, rows.count, cols.count, std::move(out));
}

}  // namespace tgi
