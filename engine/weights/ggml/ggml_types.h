// The element types of GGUF files. A row of a tensor is a run of blocks, each of so many elements
// in so many bytes, little-endian; of the plain types a block is one element.
//
// Source: the type list of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the
// dequantisation of the `gguf` package, whose values decode gives bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tgi {

struct GgmlType {
  uint32_t id = 0;         // as files spell it
  std::string_view name;   // "Q4_K"
  int64_t block_size = 0;  // elements
  int64_t block_bytes = 0;

  // (optional) Writes num_blocks * block_size values; null: can be listed, not computed with.
  void (*decode)(const std::byte* blocks, int64_t num_blocks, float* out) = nullptr;
};

// All that are known, by id.
std::span<const GgmlType> ggml_types();

// Null when there is none.
const GgmlType* find_ggml_type(uint32_t id);
const GgmlType* find_ggml_type(std::string_view name);

}  // namespace tgi
