#include "engine/weights/ggml/ggml_types.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/tensor/half.h"

namespace tgi {
namespace {

void decode_f32(const std::byte* blocks, int64_t num_blocks, float* out) {
  std::memcpy(out, blocks, static_cast<size_t>(num_blocks) * sizeof *out);
}

template <float (*kConvert)(uint16_t)>
void decode_half(const std::byte* blocks, int64_t num_blocks, float* out) {
  for (int64_t i = 0; i < num_blocks; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, blocks + 2 * i, sizeof bits);
    out[i] = kConvert(bits);
  }
}

constexpr auto kTypes = std::to_array<GgmlType>({
    {.id = 0, .name = "F32", .block_size = 1, .block_bytes = 4, .decode = decode_f32},
    {.id = 1, .name = "F16", .block_size = 1, .block_bytes = 2, .decode = decode_half<f16_to_f32>},
    {.id = 2, .name = "Q4_0", .block_size = 32, .block_bytes = 18},
    {.id = 3, .name = "Q4_1", .block_size = 32, .block_bytes = 20},
    {.id = 6, .name = "Q5_0", .block_size = 32, .block_bytes = 22},
    {.id = 7, .name = "Q5_1", .block_size = 32, .block_bytes = 24},
    {.id = 8, .name = "Q8_0", .block_size = 32, .block_bytes = 34},
    {.id = 10, .name = "Q2_K", .block_size = 256, .block_bytes = 84},
    {.id = 11, .name = "Q3_K", .block_size = 256, .block_bytes = 110},
    {.id = 12, .name = "Q4_K", .block_size = 256, .block_bytes = 144},
    {.id = 13, .name = "Q5_K", .block_size = 256, .block_bytes = 176},
    {.id = 14, .name = "Q6_K", .block_size = 256, .block_bytes = 210},
    {.id = 16, .name = "IQ2_XXS", .block_size = 256, .block_bytes = 66},
    {.id = 17, .name = "IQ2_XS", .block_size = 256, .block_bytes = 74},
    {.id = 18, .name = "IQ3_XXS", .block_size = 256, .block_bytes = 98},
    {.id = 19, .name = "IQ1_S", .block_size = 256, .block_bytes = 50},
    {.id = 20, .name = "IQ4_NL", .block_size = 32, .block_bytes = 18},
    {.id = 21, .name = "IQ3_S", .block_size = 256, .block_bytes = 110},
    {.id = 22, .name = "IQ2_S", .block_size = 256, .block_bytes = 82},
    {.id = 23, .name = "IQ4_XS", .block_size = 256, .block_bytes = 136},
    {.id = 24, .name = "I8", .block_size = 1, .block_bytes = 1},
    {.id = 25, .name = "I16", .block_size = 1, .block_bytes = 2},
    {.id = 26, .name = "I32", .block_size = 1, .block_bytes = 4},
    {.id = 27, .name = "I64", .block_size = 1, .block_bytes = 8},
    {.id = 28, .name = "F64", .block_size = 1, .block_bytes = 8},
    {.id = 29, .name = "IQ1_M", .block_size = 256, .block_bytes = 56},
    {.id = 30,
     .name = "BF16",
     .block_size = 1,
     .block_bytes = 2,
     .decode = decode_half<bf16_to_f32>},
    {.id = 34, .name = "TQ1_0", .block_size = 256, .block_bytes = 54},
    {.id = 35, .name = "TQ2_0", .block_size = 256, .block_bytes = 66},
    {.id = 39, .name = "MXFP4", .block_size = 32, .block_bytes = 17},
    {.id = 40, .name = "NVFP4", .block_size = 64, .block_bytes = 36},
    {.id = 41, .name = "Q1_0", .block_size = 128, .block_bytes = 18},
});

}  // namespace

std::span<const GgmlType> ggml_types() {
  return kTypes;
}

const GgmlType* find_ggml_type(uint32_t id) {
  const auto it = std::ranges::find(kTypes, id, &GgmlType::id);
  return it == kTypes.end() ? nullptr : &*it;
}

const GgmlType* find_ggml_type(std::string_view name) {
  const auto it = std::ranges::find(kTypes, name, &GgmlType::name);
  return it == kTypes.end() ? nullptr : &*it;
}

}  // namespace tgi
