// A checkpoint whose weights have an adapter merged into them: each number as PEFT's
// merge_and_unload makes it, computed in f32 and rounded once to the type that it is stored in.
// Nothing is computed before a tensor's bytes are asked for.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/lora/adapter_files.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

class MergedWeights final : public Checkpoint {
 public:
  // `adapter` was opened for this model and this base, and outlives it. Throws kUnsupported naming
  // what can't be merged: quantised weights, the head or the embedding where they are one tensor,
  // a bias of a linear that has none.
  MergedWeights(std::unique_ptr<Checkpoint> base,
                const AdapterFiles& adapter,
                const LoadedConfig& model,
                int num_threads);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string_view> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override;
  std::optional<RandomKey> random_key(const StoredTensor& tensor) const override;
  void release(const StoredTensor& tensor) const override;

 private:
  class Finder;
  // W (outputs, inputs), as it is stored or transposed, from its first element on; or the bias.
  struct Change {
    const AdapterLinear* linear = nullptr;
    bool is_transposed = false;
    bool is_bias = false;
    int64_t first = 0;
  };

  void add_linear(const AdapterLinear& linear, const LoadedConfig& model, const Finder& find);
  std::vector<std::byte> merged(const StoredTensor& tensor, std::span<const Change> changes) const;
  void merge(const StoredTensor& tensor, const Change& change, std::byte* out) const;
  std::vector<std::byte> merged_bias(const StoredTensor& tensor, const AdapterLinear& linear) const;

  const std::unique_ptr<Checkpoint> base_;
  const AdapterFiles& adapter_;
  const int num_threads_;
  // Of a tensor of many experts one for each of them.
  std::map<const StoredTensor*, std::vector<Change>> changes_;
  mutable std::mutex mutex_;
  // Of tensors that are in use; guarded by mutex_.
  mutable std::map<const StoredTensor*, std::vector<std::byte>> merged_;
};

}  // namespace tgi
