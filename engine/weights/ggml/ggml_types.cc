#include "engine/weights/ggml/ggml_types.h"

#include <algorithm>
#include <cstring>

#include "engine/tensor/half.h"
#include "engine/weights/ggml/read_blocks.h"

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

template <int kBlockSize, int kBlockBytes, int kGroupSize, bool kHasMinima, ReadGgmlBlock kRead>
void decode_integers(const std::byte* blocks, int64_t num_blocks, float* out) {
  constexpr int kNumGroups = kBlockSize / kGroupSize;
  int8_t codes[kBlockSize];
  float scales[kNumGroups];
  float minima[kNumGroups];
  for (int64_t block = 0; block < num_blocks; ++block, blocks += kBlockBytes) {
    kRead(blocks, codes, scales, minima);
    for (int group = 0; group < kNumGroups; ++group) {
      for (int i = group * kGroupSize; i < (group + 1) * kGroupSize; ++i) {
        *out = scales[group] * static_cast<float>(codes[i]);
        if constexpr (kHasMinima) *out += minima[group];
        ++out;
      }
    }
  }
}

// kBits: of a code, as GgmlIntegers has them.
template <int kBlockSize,
          int kBlockBytes,
          int kGroupSize,
          int kBits,
          bool kHasMinima,
          ReadGgmlBlock kRead>
constexpr GgmlType quantised(uint32_t id, std::string_view name) {
  return {.id = id,
          .name = name,
          .block_size = kBlockSize,
          .block_bytes = kBlockBytes,
          .integers = {.group_size = kGroupSize,
                       .bits = kBits,
                       .has_minima = kHasMinima,
                       .read = kRead},
          .decode = decode_integers<kBlockSize, kBlockBytes, kGroupSize, kHasMinima, kRead>};
}

constexpr GgmlType with_halves(GgmlType type) {
  type.integers.scales = ScaleForm::kF16;
  return type;
}

constexpr GgmlType with_factors(GgmlType type, void (*read)(const std::byte*, GgmlFactors&)) {
  type.integers.scales = ScaleForm::kFactors;
  type.integers.read_factors = read;
  return type;
}

constexpr GgmlType written(GgmlType type, EncodeGgmlBlocks encode) {
  type.encode = encode;
  return type;
}

constexpr GgmlType of_iq4(GgmlType type) {
  type.integers.is_iq4 = true;
  return type;
}

// clang-format off: one line each
constexpr GgmlType kTypes[] = {
    {.id = 0,
     .name = "F32",
     .block_size = 1,
     .block_bytes = 4,
     .decode = decode_f32,
     .encode = encode_f32},
    {.id = 1,
     .name = "F16",
     .block_size = 1,
     .block_bytes = 2,
     .decode = decode_half<f16_to_f32>,
     .encode = encode_f16},
    written(with_halves(quantised<32, 18, 32, 4, false, read_q4_0>(2, "Q4_0")), encode_q4_0),
    written(with_halves(quantised<32, 20, 32, 4, true, read_q4_1>(3, "Q4_1")), encode_q4_1),
    written(with_halves(quantised<32, 22, 32, 5, false, read_q5_0>(6, "Q5_0")), encode_q5_0),
    written(with_halves(quantised<32, 24, 32, 5, true, read_q5_1>(7, "Q5_1")), encode_q5_1),
    written(with_halves(quantised<32, 34, 32, 8, false, read_q8_0>(8, "Q8_0")), encode_q8_0),
    with_factors(quantised<256, 84, 16, 4, true, read_q2_k>(10, "Q2_K"), factors_of_q2_k),
    with_factors(quantised<256, 110, 16, 4, false, read_q3_k>(11, "Q3_K"), factors_of_q3_k),
    written(with_factors(quantised<256, 144, 32, 4, true, read_q4_k>(12, "Q4_K"), factors_of_q4_k),
            encode_q4_k),
    written(with_factors(quantised<256, 176, 32, 5, true, read_q5_k>(13, "Q5_K"), factors_of_q4_k),
            encode_q5_k),
    written(with_factors(quantised<256, 210, 16, 6, false, read_q6_k>(14, "Q6_K"), factors_of_q6_k),
            encode_q6_k),
    quantised<256, 66, 32, 8, false, read_iq2_xxs>(16, "IQ2_XXS"),
    quantised<256, 74, 16, 8, false, read_iq2_xs>(17, "IQ2_XS"),
    quantised<256, 98, 32, 8, false, read_iq3_xxs>(18, "IQ3_XXS"),
    quantised<256, 50, 32, 8, false, read_iq1_s>(19, "IQ1_S"),
    written(of_iq4(with_halves(quantised<32, 18, 32, 8, false, read_iq4_nl>(20, "IQ4_NL"))),
            encode_iq4_nl),
    quantised<256, 110, 32, 8, false, read_iq3_s>(21, "IQ3_S"),
    quantised<256, 82, 16, 8, false, read_iq2_s>(22, "IQ2_S"),
    written(of_iq4(with_factors(quantised<256, 136, 32, 8, false, read_iq4_xs>(23, "IQ4_XS"),
                                factors_of_iq4_xs)),
            encode_iq4_xs),
    {.id = 24, .name = "I8", .block_size = 1, .block_bytes = 1},
    {.id = 25, .name = "I16", .block_size = 1, .block_bytes = 2},
    {.id = 26, .name = "I32", .block_size = 1, .block_bytes = 4},
    {.id = 27, .name = "I64", .block_size = 1, .block_bytes = 8},
    {.id = 28, .name = "F64", .block_size = 1, .block_bytes = 8},
    quantised<256, 56, 16, 8, false, read_iq1_m>(29, "IQ1_M"),
    {.id = 30,
     .name = "BF16",
     .block_size = 1,
     .block_bytes = 2,
     .decode = decode_half<bf16_to_f32>,
     .encode = encode_bf16},
    with_halves(quantised<256, 54, 256, 4, false, read_tq1_0>(34, "TQ1_0")),
    with_halves(quantised<256, 66, 256, 4, false, read_tq2_0>(35, "TQ2_0")),
    written(quantised<32, 17, 32, 8, false, read_mxfp4>(39, "MXFP4"), encode_mxfp4),
    quantised<64, 36, 16, 8, false, read_nvfp4>(40, "NVFP4"),
    with_halves(quantised<128, 18, 128, 4, false, read_q1_0>(41, "Q1_0")),
    with_halves(quantised<64, 18, 64, 4, false, read_q2_0>(42, "Q2_0")),
};
// clang-format on

// What ggml had once: the same numbers as another type, in another order, or nothing of today.
struct FormerType {
  uint32_t id;
  std::string_view advice;
};
constexpr std::string_view kTakeQ40 =
    "a Q4_0 in another order, for one kind of processor, which ggml no longer has; take the "
    "model's file in Q4_0";
constexpr std::string_view kTakeIq4Nl =
    "an IQ4_NL in another order, for one kind of processor, which ggml no longer has; take the "
    "model's file in IQ4_NL";
constexpr FormerType kFormerTypes[] = {
    {4,
     "which ggml no longer has; ollama's first files of gpt-oss use its number: pull the model "
     "again"},
    {5, "which ggml no longer has; take the model's file in another type"},
    {31, kTakeQ40},
    {32, kTakeQ40},
    {33, kTakeQ40},
    {36, kTakeIq4Nl},
    {37, kTakeIq4Nl},
    {38, kTakeIq4Nl},
};

}  // namespace

std::span<const GgmlType> ggml_types() {
  return kTypes;
}

const GgmlType* find_ggml_type(uint32_t id) {
  const auto* const it = std::ranges::find(kTypes, id, &GgmlType::id);
  return it == std::end(kTypes) ? nullptr : it;
}

std::string_view advice_on_type(uint32_t id) {
  const auto* const it = std::ranges::find(kFormerTypes, id, &FormerType::id);
  return it == std::end(kFormerTypes)
             ? "which this build does not know; `tgi --version` says how new it is"
             : it->advice;
}

const GgmlType* find_ggml_type(std::string_view name) {
  const auto* const it = std::ranges::find(kTypes, name, &GgmlType::name);
  return it == std::end(kTypes) ? nullptr : it;
}

}  // namespace tgi
