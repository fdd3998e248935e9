#include "engine/lora/adapter_tensors.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/error.h"

namespace tgi {
namespace {

std::optional<DType> native_type(std::string_view name) {
  if (name == "F32") return DType::kF32;
  if (name == "F16") return DType::kF16;
  if (name == "BF16") return DType::kBF16;
  return std::nullopt;
}

std::vector<float> values_of(const GgufTensor& tensor) {
  const GgmlType& type = *tensor.type;
  if (type.decode == nullptr) {
    throw Error(Code::kUnsupported,
                fmt::format("tensor {}: elements of {} can't be used", tensor.name, type.name));
  }
  std::vector<float> out(static_cast<size_t>(tensor.num_elements()));
  type.decode(tensor.bytes.data(), tensor.num_elements() / type.block_size, out.data());
  return out;
}

}  // namespace

AdapterTensors::AdapterTensors(const FileSource& files, std::string file)
    : files_(files), file_(std::move(file)) {}

void AdapterTensors::add(const std::string& name,
                         const GgufTensor& tensor,
                         std::span<const int32_t> rows) {
  const auto dtype = native_type(tensor.type->name);
  if (dtype && rows.empty()) return put(name, *dtype, tensor.shape, tensor.bytes, {});
  std::vector<float> decoded;
  std::span<const std::byte> from = tensor.bytes;
  if (!dtype) {
    decoded = values_of(tensor);
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
  put(name, dtype.value_or(DType::kF32), std::move(shape), {}, std::move(bytes));
}

void AdapterTensors::add_transposed(const std::string& name, const GgufTensor& tensor) {
  const std::vector<float> values = values_of(tensor);
  const auto rows = static_cast<size_t>(tensor.shape[0]);
  const auto cols = static_cast<size_t>(tensor.shape[1]);
  std::vector<float> turned(values.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t col = 0; col < cols; ++col) turned[col * rows + row] = values[row * cols + col];
  }
  const auto bytes = std::as_bytes(std::span(turned));
  put(name, DType::kF32, {tensor.shape[1], tensor.shape[0]}, {}, {bytes.begin(), bytes.end()});
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
                         DType dtype,
                         std::vector<int64_t> shape,
                         std::span<const std::byte> stored,
                         std::vector<std::byte> made) {
  const std::string_view dtype_name = dtype == DType::kF32   ? "F32"
                                      : dtype == DType::kF16 ? "F16"
                                                             : "BF16";
  Record record{.tensor = {.name = name,
                           .dtype_name = dtype_name,
                           .dtype = dtype,
                           .shape = std::move(shape),
                           .file = file_},
                .stored = stored,
                .made = std::move(made)};
  if (records_.emplace(name, std::move(record)).second) return;
  throw Error(Code::kInvalidArgument, fmt::format("two tensors are {}", name));
}

}  // namespace tgi
