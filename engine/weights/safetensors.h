// One safetensors file: a table of named arrays over bytes that someone else keeps mapped. Not a
// model, not a folder of shards (checkpoint.h).
//
// Format: https://github.com/huggingface/safetensors#format
//   u64 LE length of the header | header, JSON | data
//   header: {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//            "__metadata__": {"key": "value"}}
// As in the reference implementation, the arrays must tile the data exactly: no hole, no overlap,
// nothing after the last one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/tensor.h"

namespace tgi {

// An element type that the format knows. Few of them can be computed with.
struct SafetensorsDType {
  std::string_view name;        // "BF16"
  int64_t bits = 0;             // of one element
  std::optional<DType> native;  // nothing: arrays of it can be listed, not computed with
};

struct SafetensorsEntry {
  std::string name;
  const SafetensorsDType* dtype = nullptr;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // not necessarily aligned to the element's size
};

// Sorted by name. Throws kInvalidArgument whose message begins with `file` and names the tensor and
// the numbers that don't fit.
std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> bytes,
                                                const std::string& file);

}  // namespace tgi
