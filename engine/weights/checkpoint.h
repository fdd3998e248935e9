// The tensors of a model by name: safetensors (one file or a sharded index), or random ones made
// from the config alone. Views point into the mapped files. Safe to read from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_source.h"
#include "engine/tensor/tensor.h"

namespace tgi {

struct StoredTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::string file;  // for messages
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // Nothing when there is no such tensor.
  virtual const StoredTensor* find(std::string_view name) const = 0;
  virtual std::vector<std::string_view> names() const = 0;

  // The caller is done with this tensor's bytes: their pages need not stay resident.
  virtual void release(const StoredTensor& tensor) const = 0;
};

// Throws kNotFound when there is neither model.safetensors nor model.safetensors.index.json,
// kInvalidArgument naming file, tensor and numbers when one is malformed, kUnsupported for element
// types that this build does not know.
std::unique_ptr<Checkpoint> open_checkpoint(const FileSource& files);

}  // namespace tgi
