// The element types of GGUF files. A row of a tensor is a run of blocks, each of so many elements
// in so many bytes, little-endian; of the plain types a block is one element.
//
// However a type packs them, the elements of its blocks are small integers in groups that share a
// scale, some with a number that is added:
//   value = scales[g] * codes[i] + minima[g],   g = i / group_size, each step rounded to f32.
//
// Source: the type list of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and the
// dequantisation of the `gguf` package, whose values these are bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/tensor/weight.h"
#include "engine/weights/ggml/encode_blocks.h"

namespace tgi {

// Writes one block's codes (block_size), scales and, where the type has them, minima
// (block_size / group_size each).
using ReadGgmlBlock = void (*)(const std::byte* block, int8_t* codes, float* scales, float* minima);

// What the scales and minima of a block of 256 are made of, see ScaleFactors.
struct GgmlFactors {
  float scale = 0;
  float minimum = 0;
  int8_t scales[16] = {};
  int8_t minima[16] = {};
};

struct GgmlIntegers {
  int32_t group_size = 0;  // 0: the elements are plain numbers
  int32_t bits = 8;        // that a code needs: of 4, codes are 0 to 15 with minima, else -8 to 7
  bool is_iq4 = false;     // codes are some of kIq4Codes, which take 4 bits
  bool has_minima = false;
  ReadGgmlBlock read = nullptr;
  ScaleForm scales = ScaleForm::kF32;
  void (*read_factors)(const std::byte* block, GgmlFactors& out) = nullptr;  // where they have them
};

struct GgmlType {
  uint32_t id = 0;         // as files spell it
  std::string_view name;   // "Q4_K"
  int64_t block_size = 0;  // elements
  int64_t block_bytes = 0;
  GgmlIntegers integers{};

  // (optional) Writes num_blocks * block_size values; null: can be listed, not computed with.
  void (*decode)(const std::byte* blocks, int64_t num_blocks, float* out) = nullptr;

  EncodeGgmlBlocks encode = nullptr;  // (optional) null: is read only

  bool is_quantised() const { return integers.group_size > 0; }
};

// All that are known, by id.
std::span<const GgmlType> ggml_types();

// Null when there is none.
const GgmlType* find_ggml_type(uint32_t id);
const GgmlType* find_ggml_type(std::string_view name);

// Of a type that is not known: what there is to say of it, and to do.
std::string_view advice_on_type(uint32_t id);

}  // namespace tgi
