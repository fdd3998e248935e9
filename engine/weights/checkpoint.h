// The tensors of a model by name: safetensors, one file or a sharded index. Views point into the
// mapped files. Safe to read from several threads.
//
// The bytes of a tensor are asked for apart from its description, so that a table can be checked
// without touching the data, and so that a checkpoint may make its data when asked
// (make_dummy_checkpoint).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_source.h"
#include "engine/tensor/random_weights.h"
#include "engine/tensor/tensor.h"

namespace tgi {

struct StoredTensor {
  std::string name;
  std::string_view dtype_name;  // as the file spells it, for messages: "BF16", "I64"
  std::optional<DType> dtype;   // nothing: can be listed, not computed with
  std::vector<int64_t> shape;
  std::string file;                      // for messages
  std::span<const int32_t> row_order{};  // (optional) row r is stored row row_order[r]

  int64_t num_elements() const {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
  }
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // Nothing when there is no such tensor. The tensor lives as long as the checkpoint.
  virtual const StoredTensor* find(std::string_view name) const = 0;
  virtual std::vector<std::string_view> names() const = 0;

  // The data of a tensor of this checkpoint, row-major, little-endian, valid until it is released;
  // not necessarily aligned to the element's size.
  virtual std::span<const std::byte> bytes(const StoredTensor& tensor) const = 0;

  // Set: the tensor is random numbers that the device is to make itself
  // (engine/tensor/random_weights.h); its bytes are not asked for.
  virtual std::optional<RandomKey> random_key(const StoredTensor& /*tensor*/) const {
    return std::nullopt;
  }

  // The caller is done with this tensor's bytes: their pages need not stay resident.
  virtual void release(const StoredTensor& tensor) const = 0;
};

// Throws kNotFound when there is neither model.safetensors nor model.safetensors.index.json, or a
// shard is missing, and kInvalidArgument naming file, tensor and numbers when one is malformed.
std::unique_ptr<Checkpoint> open_checkpoint(const FileSource& files);

// The tensors of this one file. Throws kNotFound when it is not there, and as above.
std::unique_ptr<Checkpoint> open_safetensors(const FileSource& files, const std::string& name);

// `name` as tables spell it today, or as other checkpoints do: with or without `prefix` ("model."),
// in front or after the first dot ("model.language_model.norm.weight"), that of a head too
// ("model.language_model.lm_head.weight"), a norm's weight and bias as
// gamma and beta. Nothing when there is none of them.
const StoredTensor* find_by_any_name(const Checkpoint& checkpoint,
                                     std::string_view name,
                                     std::string_view prefix);

// "(4096, 1024)", for messages.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace tgi
