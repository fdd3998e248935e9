// The tensors of an adapter in a GGUF file under the names that PEFT gives them, as a checkpoint.
// Not thread-safe while it is filled; then any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/checkpoint.h"
#include "engine/weights/ggml/gguf_file.h"

namespace tgi {

class AdapterTensors final : public Checkpoint {
 public:
  // `files` holds the bytes of what is not made anew, and outlives this; `file`: its name, for
  // messages.
  AdapterTensors(const FileSource& files, std::string file);

  // Row r is stored row rows[r]; empty: r. Numbers that devices know stay what they are. Both throw
  // kUnsupported for elements that can't be used, and kInvalidArgument for a name that is there
  // already.
  void add(const std::string& name, const GgufTensor& tensor, std::span<const int32_t> rows);
  void add_transposed(const std::string& name, const GgufTensor& tensor);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string_view> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override;
  void release(const StoredTensor& tensor) const override;

 private:
  struct Record {
    StoredTensor tensor;
    std::span<const std::byte> stored;
    std::vector<std::byte> made;  // empty: `stored`
  };

  void put(const std::string& name,
           const GgmlType& type,
           std::vector<int64_t> shape,
           std::span<const std::byte> stored,
           std::vector<std::byte> made);

  const FileSource& files_;
  const std::string file_;
  std::map<std::string, Record, std::less<>> records_;
};

}  // namespace tgi
