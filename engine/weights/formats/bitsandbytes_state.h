// What bitsandbytes stores beside a matrix of 4 bits, in JSON as the bytes of a tensor: how the
// codes are cut into blocks and what their scales are made of.
//
// Source: QuantState of bitsandbytes/functional.py, 0.41 to 0.50.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tgi {

// Scales that are quantised too, to 8 bits with a table and a scale for each block of them.
struct NestedScales {
  int64_t block_size = 0;
  float offset = 0;  // added to each
};

struct BitsAndBytesState {
  bool is_nf4 = false;         // else fp4
  int64_t block_size = 0;      // elements that share a scale, a power of two
  std::vector<int64_t> shape;  // of the matrix
  std::optional<NestedScales> nested{};
};

// `tensor` is the name of the one with these bytes. Throws kInvalidArgument or kUnsupported naming
// it and the field.
BitsAndBytesState parse_bitsandbytes_state(std::span<const std::byte> bytes,
                                           const std::string& tensor);

}  // namespace tgi
