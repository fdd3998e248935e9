// A checkpoint as torch.save writes it: a zip file with a pickle that describes the tensors and a
// member for each storage, or what it wrote before 1.6 (torch_stream.h). Storages are mapped and
// never copied. Only state dicts: names and tensors, or such a dict under the name "state_dict".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_source.h"

namespace tgi::download {

// A strided view of a storage.
struct TorchTensor {
  std::string name;
  std::string dtype;  // as safetensors spells it: "F16"
  int64_t element_bytes = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // (shape.size()), in elements, none negative
  int64_t offset = 0;            // of the first element, in elements
  std::span<const std::byte> storage;

  int64_t num_elements() const;
  int64_t num_bytes() const { return num_elements() * element_bytes; }
  bool is_contiguous() const;  // row-major without holes

  // The very same numbers: storage, offset, shape and strides.
  bool is_same_view(const TorchTensor& other) const;
};

// The tensors of one file in its order; they point into `bytes`. Throws kInvalidArgument beginning
// with `where` for files that are damaged, hold code or anything but tensors, and kUnsupported for
// those that say what to do about them: big-endian, TorchScript, sparse or quantised tensors.
std::vector<TorchTensor> read_torch(std::span<const std::byte> bytes, std::string_view where);

}  // namespace tgi::download
