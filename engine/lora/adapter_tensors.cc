#include "engine/lora/adapter_tensors.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "engine/weights/ggml/gguf_values.h"

namespace tgi {
AdapterTensors::AdapterTensors(const FileSource& files, std::string file)
    : files_(files), file_(std::move(file)) {}

void AdapterTensors::add(const std::string& name,
                         const GgufTensor& tensor,
                         std::span<const int32_t> rows) {
  const bool is_native = native_type(*tensor.type).has_value();
  if (is_native && rows.empty()) return put(name, *tensor.type, tensor.shape, tensor.bytes, {});
  std::vector<float> decoded;
  std::span<const std::byte> from = tensor.bytes;
  if (!is_native) {
    decoded = decode_values(tensor, tensor.bytes);
    from = std::as_bytes(std::span(decoded));
  }
  std::vector<std::byte> bytes;
  if (rows.empty()) {
    bytes.assign(from.begin(), from.end());
  } else {
    const size_t row_bytes = from.size() / static_cast<size_t>(tensor.shape.front());
    for (const int32_t row : rows) {
      const auto one = from.subspan(static_cast<size_t>(row) * row_bytes, row_bytes);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
  }
  std::vector<int64_t> shape = tensor.shape;
  if (!rows.empty()) shape.front() = static_cast<int64_t>(rows.size());
  put(name, is_native ? *tensor.type : *find_ggml_type("F32"), std::move(shape), {},
      std::move(bytes));
}

void AdapterTensors::add_transposed(const std::string& name, const GgufTensor& tensor) {
  const std::vector<float> values = decode_values(tensor, tensor.bytes);
  const auto rows = static_cast<size_t>(tensor.shape[0]);
  const auto cols = static_cast<size_t>(tensor.shape[1]);
  std::vector<float> turned(values.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t col = 0; col < cols; ++col) turned[col * rows + row] = values[row * cols + col];
  }
  const auto bytes = std::as_bytes(std::span(turned));
  put(name, *find_ggml_type("F32"), {tensor.shape[1], tensor.shape[0]}, {},
      {bytes.begin(), bytes.end()});
}

const StoredTensor* AdapterTensors::find(std::string_view name) const {
  const auto it = records_.find(name);
  return it == records_.end() ? nullptr : &it->second.tensor;
}

std::vector<std::string_view> AdapterTensors::names() const {
  std::vector<std::string_view> out;
  for (const auto& [name, record] : records_) out.emplace_back(name);
  return out;
}

std::span<const std::byte> AdapterTensors::bytes(const StoredTensor& tensor) const {
  const Record& record = records_.find(tensor.name)->second;
  return record.made.empty() ? record.stored : std::span<const std::byte>(record.made);
}

void AdapterTensors::release(const StoredTensor& tensor) const {
  const Record& record = records_.find(tensor.name)->second;
  if (record.made.empty()) files_.release(record.stored);
}

void AdapterTensors::put(const std::string& name,
                         const GgmlType& type,
                         std::vector<int64_t> shape,
                         std::span<const std::byte> stored,
                         std::vector<std::byte> made) {
  Record record{.tensor = {.name = name,
                           .dtype_name = type.name,
                           .dtype = native_type(type),
                           .shape = std::move(shape),
                           .file = file_},
                .stored = stored,
                .made = std::move(made)};
  if (records_.emplace(name, std::move(record)).second) return;
  throw Error(Code::kInvalidArgument, fmt::format("two tensors are {}", name));
}

}  // namespace tgi
