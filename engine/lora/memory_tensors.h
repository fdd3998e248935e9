// Tensors that were computed, as a checkpoint: for adapters that lie in no file.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/checkpoint.h"

namespace tgi {

class MemoryTensors final : public Checkpoint {
 public:
  // f32, row-major. The tensor lives as long as this does.
  const StoredTensor* add(std::string name, std::vector<int64_t> shape, std::vector<float> values);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string_view> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override;
  void release(const StoredTensor& /*tensor*/) const override {}

 private:
  struct Entry {
    StoredTensor tensor;
    std::vector<float> values;
  };
  std::deque<Entry> entries_;
};

}  // namespace tgi
