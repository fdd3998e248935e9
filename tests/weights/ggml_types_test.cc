// The values of ggml's blocks, bit for bit those of the gguf package
// (scripts/golden/make_ggml_blocks).
#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "base/files/regular_file.h"
#include "base/json.h"
#include "engine/tensor/half.h"
#include "engine/weights/ggml/ggml_types.h"
#include "tests/catch.h"

namespace tgi {
namespace {

std::vector<std::byte> bytes_of_hex(const std::string& hex) {
  std::vector<std::byte> out;
  for (size_t i = 0; i < hex.size(); i += 2) {
    out.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

Json golden_blocks() {
  return parse_json(read_regular_file(TGI_SOURCE_DIR "/tests/golden/ggml_blocks.json"));
}

}  // namespace

TEST_CASE("blocks of every type have the values of the gguf package") {
  const Json golden = golden_blocks();
  CHECK(golden.size() == 25);
  for (const auto& [name, one] : golden.items()) {
    INFO(name);
    const GgmlType* type = find_ggml_type(std::string_view(name));
    REQUIRE(type != nullptr);
    REQUIRE(type->decode != nullptr);
    const std::vector<std::byte> blocks = bytes_of_hex(one.at("blocks"));
    const auto expected = one.at("values").get<std::string>();
    const auto num_blocks = static_cast<int64_t>(blocks.size()) / type->block_bytes;
    std::vector<float> values(static_cast<size_t>(num_blocks * type->block_size));
    REQUIRE(expected.size() == 8 * values.size());
    type->decode(blocks.data(), num_blocks, values.data());
    size_t num_wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto bits = static_cast<uint32_t>(std::stoul(expected.substr(8 * i, 8), nullptr, 16));
      // -0 of a code of 0 is 0 here and there.
      const bool is_same =
          std::bit_cast<uint32_t>(values[i]) == bits || (values[i] == 0 && (bits << 1) == 0);
      num_wrong += is_same ? 0 : 1;
    }
    CHECK(num_wrong == 0);
  }
}

TEST_CASE("codes of a few bits are those that so many bits hold") {
  const Json golden = golden_blocks();
  for (const GgmlType& type : ggml_types()) {
    if (!type.is_quantised()) continue;
    INFO(type.name);
    CHECK(type.block_size % type.integers.group_size == 0);
    const std::vector<std::byte> blocks =
        bytes_of_hex(golden.at(std::string(type.name)).at("blocks"));
    int8_t codes[256];
    float scales[16];
    float minima[16];
    for (size_t at = 0; at < blocks.size(); at += static_cast<size_t>(type.block_bytes)) {
      type.integers.read(blocks.data() + at, codes, scales, minima);
      const bool has_sign = type.integers.bits == 8 || !type.integers.has_minima;
      const int lowest = has_sign ? -(1 << (type.integers.bits - 1)) : 0;
      const int highest = lowest + (1 << type.integers.bits) - 1;
      for (int64_t i = 0; i < type.block_size; ++i) {
        CHECK((codes[i] >= lowest && codes[i] <= highest));
        const bool is_one = std::ranges::find(kIq4Codes, codes[i]) != std::end(kIq4Codes);
        if (type.integers.is_iq4) CHECK(is_one);
      }
    }
  }
}

TEST_CASE("scales and minima are what they are said to be held as without a loss") {
  const Json golden = golden_blocks();
  std::set<std::string_view> with_factors;
  std::set<std::string_view> with_halves;
  for (const GgmlType& type : ggml_types()) {
    if (!type.is_quantised()) continue;
    INFO(type.name);
    const GgmlIntegers& reader = type.integers;
    if (reader.scales == ScaleForm::kFactors) with_factors.insert(type.name);
    if (reader.scales == ScaleForm::kF16) with_halves.insert(type.name);
    CHECK((reader.read_factors != nullptr) == (reader.scales == ScaleForm::kFactors));
    const std::vector<std::byte> blocks =
        bytes_of_hex(golden.at(std::string(type.name)).at("blocks"));
    const auto same = [](float a, float b) {
      return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
    };
    int8_t codes[256];
    float scales[16] = {};
    float minima[16] = {};
    for (size_t at = 0; at < blocks.size(); at += static_cast<size_t>(type.block_bytes)) {
      reader.read(blocks.data() + at, codes, scales, minima);
      GgmlFactors factors;
      if (reader.read_factors != nullptr) reader.read_factors(blocks.data() + at, factors);
      for (int64_t group = 0; group < type.block_size / reader.group_size; ++group) {
        const float scale = scales[group];
        const float minimum = reader.has_minima ? minima[group] : 0.0F;
        if (reader.scales == ScaleForm::kF16) {
          CHECK(same(scale, f16_to_f32(f32_to_f16(scale))));
          CHECK(same(minimum, f16_to_f32(f32_to_f16(minimum))));
        }
        if (reader.scales != ScaleForm::kFactors) continue;
        CHECK(type.block_size == kFactorCols);
        CHECK(same(factors.scale, f16_to_f32(f32_to_f16(factors.scale))));
        CHECK(same(factors.minimum, f16_to_f32(f32_to_f16(factors.minimum))));
        CHECK(same(scale, factors.scale * static_cast<float>(factors.scales[group])));
        if (!reader.has_minima) continue;
        CHECK(same(minimum, -(factors.minimum * static_cast<float>(factors.minima[group]))));
      }
    }
  }
  CHECK(with_factors ==
        std::set<std::string_view>{"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"});
  CHECK(with_halves == std::set<std::string_view>{"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL",
                                                  "TQ1_0", "TQ2_0", "Q1_0", "Q2_0"});
}

TEST_CASE("types are found by id and by name, and there is one of each") {
  std::set<uint32_t> ids;
  std::set<std::string_view> names;
  for (const GgmlType& type : ggml_types()) {
    CHECK(ids.insert(type.id).second);
    CHECK(names.insert(type.name).second);
    CHECK(find_ggml_type(type.id) == &type);
    CHECK(find_ggml_type(type.name) == &type);
  }
  CHECK(find_ggml_type(uint32_t{4}) == nullptr);
  CHECK(find_ggml_type("Q4_2") == nullptr);
  for (const uint32_t former : {31U, 32U, 33U}) {
    CHECK(find_ggml_type(former) == nullptr);
    CHECK(advice_on_type(former).find("in Q4_0") != std::string_view::npos);
  }
  CHECK(advice_on_type(4).find("pull the model again") != std::string_view::npos);
  CHECK(advice_on_type(99).find("tgi --version") != std::string_view::npos);
}

}  // namespace tgi
