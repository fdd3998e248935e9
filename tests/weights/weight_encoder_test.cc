// Bits of known small matrices, written out by hand from the descriptions of the layouts.
#include "engine/weights/weight_encoder.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "engine/tensor/float8.h"
#include "tests/catch.h"

namespace tgi::weight_encoder_test {
namespace {

template <typename T>
std::vector<T> as(const EncodedArray& array) {
  std::vector<T> out(array.bytes.size() / sizeof(T));
  std::memcpy(out.data(), array.bytes.data(), array.bytes.size());
  return out;
}

// (8, 16): code (r + c) % 16 - 8, scales 2^-(group), groups of 8.
GroupedMatrix small_matrix(bool asymmetric) {
  GroupedMatrix out{
      .rows = 8, .cols = 16, .bits = 4, .group_size = 8, .codes = {}, .scales = {}, .zeros = {}};
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 16; ++c) out.codes.push_back(static_cast<int8_t>((r + c) % 16 - 8));
    for (int g = 0; g < 2; ++g) {
      out.scales.push_back(std::ldexp(1.0F, -g));
      if (asymmetric) out.zeros.push_back(static_cast<int8_t>(r - g - 4));
    }
  }
  return out;
}

TEST_CASE("int4 is packed along columns from the lowest bits on") {
  const WeightEncoder& encoder = find_weight_encoder("int4");
  const auto arrays = encoder.encode(small_matrix(true), DType::kBF16);
  REQUIRE(arrays.size() == 4);
  CHECK(arrays[0].suffix == "weight_packed");
  CHECK(arrays[0].shape == std::vector<int64_t>{8, 2});
  // Row 1: codes 1, 2, ... 15, 0.
  CHECK(as<uint32_t>(arrays[0])[2] == 0x87654321U);
  CHECK(as<uint32_t>(arrays[0])[3] == 0x0FEDCBA9U);
  CHECK(arrays[1].dtype == "BF16");
  CHECK(as<uint16_t>(arrays[1])[0] == 0x3F80);
  CHECK(as<uint16_t>(arrays[1])[1] == 0x3F00);
  CHECK(as<int64_t>(arrays[2]) == std::vector<int64_t>{8, 16});
  // Zero points are packed along rows: of group 0 they are r - 4 + 8.
  CHECK(arrays[3].shape == std::vector<int64_t>{1, 2});
  CHECK(as<uint32_t>(arrays[3])[0] == 0xBA987654U);
  CHECK(as<uint32_t>(arrays[3])[1] == 0xA9876543U);
}

TEST_CASE("gptq is packed along columns of the transpose, zero points less one when symmetric") {
  const WeightEncoder& encoder = find_weight_encoder("gptq");
  const auto arrays = encoder.encode(small_matrix(false), DType::kBF16);
  REQUIRE(arrays.size() == 4);
  CHECK(arrays[0].shape == std::vector<int64_t>{2, 8});
  // Column 0 to 7 of row 1.
  CHECK(as<uint32_t>(arrays[0])[1] == 0x87654321U);
  CHECK(as<uint32_t>(arrays[1]) == std::vector<uint32_t>{0x77777777U, 0x77777777U});
  CHECK(arrays[2].dtype == "F16");
  CHECK(as<uint16_t>(arrays[2])[0] == 0x3C00);
  CHECK(as<uint16_t>(arrays[2])[8] == 0x3800);
  CHECK(as<int32_t>(arrays[3]) ==
        std::vector<int32_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(as<uint32_t>(encoder.encode(small_matrix(true), DType::kBF16)[1])[0] == 0xBA987654U);
  CHECK(encoder.quantization_config({.group_size = 8}).at("checkpoint_format") == "gptq");
  CHECK(encoder.quantization_config({.group_size = 8, .asymmetric = true, .dense_modules = {}})
            .at("checkpoint_format") == "gptq_v2");
}

TEST_CASE("awq interleaves the rows of a word") {
  const auto arrays = find_weight_encoder("awq").encode(small_matrix(true), DType::kF16);
  REQUIRE(arrays.size() == 3);
  CHECK(arrays[0].shape == std::vector<int64_t>{16, 1});
  // Column 0 of rows 0 to 7 is 0 to 7, kept as 0, 2, 4, 6, 1, 3, 5, 7.
  CHECK(as<uint32_t>(arrays[0])[0] == 0x75316420U);
  CHECK(as<uint32_t>(arrays[1])[0] == 0xB975A864U);
}

TEST_CASE("fp8 has a scale per row and the largest value at the end of the range") {
  const WeightEncoder& encoder = find_weight_encoder("fp8");
  const std::vector<float> w = {1.0F, -2.0F, 0.5F, 0.0F, 0.0F, 0.0F};
  const auto arrays = encoder.encode_floats(w, 2, 3, DType::kF32);
  const auto codes = as<uint8_t>(arrays[0]);
  const auto scales = as<float>(arrays[1]);
  CHECK(arrays[1].shape == std::vector<int64_t>{2, 1});
  CHECK(scales[0] == 2.0F / 448.0F);
  CHECK(scales[1] == 1.0F);
  CHECK(codes[1] == 0xFE);
  CHECK(e4m3_to_f32(codes[0]) == 224.0F);
  CHECK(codes[3] == 0);
}

TEST_CASE("what is described is what is encoded") {
  for (const WeightEncoder* encoder : weight_encoders()) {
    for (const bool asymmetric : {false, true}) {
      if (asymmetric && !encoder->asymmetric) continue;
      INFO(encoder->name << " asymmetric " << asymmetric);
      const GroupedMatrix matrix = small_matrix(asymmetric);
      const EncodedShape shape{.rows = 8,
                               .cols = 16,
                               .group_size = encoder->takes_floats ? 16 : 8,
                               .asymmetric = asymmetric,
                               .model_dtype = DType::kBF16};
      const auto described = encoder->describe(shape);
      const auto encoded =
          encoder->takes_floats
              ? encoder->encode_floats(std::vector<float>(128, 1.0F), 8, 16, DType::kBF16)
              : encoder->encode(matrix, DType::kBF16);
      REQUIRE(described.size() == encoded.size());
      for (size_t i = 0; i < encoded.size(); ++i) {
        CHECK(described[i].suffix == encoded[i].suffix);
        CHECK(described[i].shape == encoded[i].shape);
        CHECK(described[i].dtype == encoded[i].dtype);
        CHECK(described[i].bytes.empty());
        CHECK_FALSE(encoded[i].bytes.empty());
      }
    }
  }
}

TEST_CASE("a shape that does not suit a format is refused with its numbers") {
  CHECK_THROWS_WITH(find_weight_encoder("int4").describe({.rows = 8, .cols = 48, .group_size = 32}),
                    Catch::Contains("group size 32 does not divide the 48 columns"));
  CHECK_THROWS_WITH(find_weight_encoder("gptq").describe({.rows = 7, .cols = 32, .group_size = 32}),
                    Catch::Contains("(7, 32)"));
  CHECK_THROWS_WITH(find_weight_encoder("awq").describe({.rows = 7, .cols = 32, .group_size = 32}),
                    Catch::Contains("rows by 8, got 7"));
  CHECK_THROWS_WITH(find_weight_encoder("fp8").describe({.rows = 7, .cols = 32, .group_size = 8}),
                    Catch::Contains("one scale per row"));
  CHECK_THROWS_WITH(find_weight_encoder("nf4"), Catch::Contains("int8, int4, gptq, awq, fp8"));
  GroupedMatrix matrix = small_matrix(false);
  matrix.scales[3] = 1e6F;
  CHECK_THROWS_WITH(find_weight_encoder("gptq").encode(matrix, DType::kF32),
                    Catch::Contains("f16 can't hold"));
}

TEST_CASE("e4m3 rounds to the nearest value, ties to even, and keeps every value") {
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<uint8_t>(code);
    const float value = e4m3_to_f32(bits);
    if ((code & 0x7F) == 0x7F) {
      CHECK(std::isnan(value));
      continue;
    }
    CHECK(f32_to_e4m3(value) == bits);
    if ((code & 0x7F) >= 0x7E) continue;
    // Halfway to the next of larger magnitude, and just beside.
    const auto next = static_cast<uint8_t>(code + 1);
    const float middle = (value + e4m3_to_f32(next)) / 2;
    CHECK(f32_to_e4m3(middle) == (code % 2 == 0 ? bits : next));
    CHECK(f32_to_e4m3(std::nextafter(middle, e4m3_to_f32(next))) == next);
    CHECK(f32_to_e4m3(std::nextafter(middle, value)) == bits);
  }
  CHECK(f32_to_e4m3(1e9F) == 0x7E);
  CHECK(f32_to_e4m3(-std::numeric_limits<float>::infinity()) == 0xFE);
  CHECK(e4m3_to_f32(0x7E) == kLargestE4M3);
}

}  // namespace
}  // namespace tgi::weight_encoder_test
