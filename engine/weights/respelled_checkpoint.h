// A checkpoint whose tensors have the names of another spelling, too.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/checkpoint.h"

namespace tgi {

// Part of a name, and what a table has in its place.
struct TensorRename {
  std::string_view stored;
  std::string_view usual;
};

// The usual name of a tensor, by all renames one after the other.
std::string respelled(std::string_view stored, std::span<const TensorRename> renames);

// Finds tensors by their usual names, and lists those. The renames are made one after the other.
// Where a name is taken by then, a tensor keeps its own.
// `checkpoint` must outlive it.
class RespelledCheckpoint final : public Checkpoint {
 public:
  RespelledCheckpoint(const Checkpoint& checkpoint, std::span<const TensorRename> renames);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string_view> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    return checkpoint_.bytes(tensor);
  }
  std::optional<RandomKey> random_key(const StoredTensor& tensor) const override {
    return checkpoint_.random_key(tensor);
  }
  void release(const StoredTensor& tensor) const override { checkpoint_.release(tensor); }

 private:
  const Checkpoint& checkpoint_;
  std::map<std::string, std::string_view, std::less<>> stored_names_;  // by the usual one
};

}  // namespace tgi
