#include "engine/lora/memory_tensors.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tgi {

const StoredTensor* MemoryTensors::add(std::string name,
                                       std::vector<int64_t> shape,
                                       std::vector<float> values) {
  Entry& entry = entries_.emplace_back();
  entry.tensor = {.name = std::move(name),
                  .dtype_name = "F32",
                  .dtype = DType::kF32,
                  .shape = std::move(shape),
                  .file = "memory"};
  entry.values = std::move(values);
  TGI_CHECK(entry.tensor.num_elements() == static_cast<int64_t>(entry.values.size()));
  return &entry.tensor;
}

const StoredTensor* MemoryTensors::find(std::string_view name) const {
  const auto it = std::ranges::find(
      entries_, name, [](const Entry& entry) -> const std::string& { return entry.tensor.name; });
  return it == entries_.end() ? nullptr : &it->tensor;
}

std::vector<std::string_view> MemoryTensors::names() const {
  std::vector<std::string_view> out;
  for (const Entry& entry : entries_) out.push_back(entry.tensor.name);
  std::ranges::sort(out);
  return out;
}

std::span<const std::byte> MemoryTensors::bytes(const StoredTensor& tensor) const {
  const auto it =
      std::ranges::find(entries_, &tensor, [](const Entry& entry) { return &entry.tensor; });
  TGI_CHECK(it != entries_.end());
  return std::as_bytes(std::span(it->values));
}

}  // namespace tgi
