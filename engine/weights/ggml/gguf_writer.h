// Writes a GGUF file of version 3 a piece at a time, so that nothing need be whole in memory: first
// the metadata and what the tensors are, then their bytes in that order.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (gguf_file.h reads it)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files/new_file.h"
#include "engine/weights/ggml/gguf_fields.h"

namespace tgi {

struct GgufTensorHeader {
  std::string name;
  const GgmlType* type = nullptr;
  std::vector<int64_t> shape;  // row-major, outermost first; the last a multiple of a block

  int64_t num_elements() const;
  int64_t bytes() const;
};

// Belongs to one thread.
class GgufWriter {
 public:
  // `file` outlives it. Throws kOutOfMemory when the disk has too little room for all of it.
  GgufWriter(NewFile& file, const GgufFields& fields, std::span<const GgufTensorHeader> tensors);

  int64_t total_bytes() const { return total_bytes_; }  // of the file

  // The next bytes of the tensor whose turn it is: parts of it, but of one tensor only. Throws
  // kInternal for more than it holds, kOutOfMemory when the disk is full.
  void append(std::span<const std::byte> bytes);

  // Throws kInternal unless every byte was given.
  void finish();

 private:
  NewFile& file_;
  std::vector<int64_t> sizes_;  // of the tensors
  size_t tensor_ = 0;
  int64_t missing_bytes_ = 0;  // of that tensor
  int64_t total_bytes_ = 0;
};

}  // namespace tgi
