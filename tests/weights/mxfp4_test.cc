// MXFP4 (engine/weights/formats/mxfp4.cc): every code and every exponent, matrices by turns and in
// parts, and what does not fit.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/matrix_reader.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::mxfp4_test {
namespace {

constexpr const char* kName = "model.layers.0.mlp.experts.gate_up_proj";
constexpr int64_t kExperts = 3;
constexpr int64_t kStoredRows = 10;
constexpr int64_t kStoredCols = 96;

// Up of expert 1.
MatrixSpec up_of_one() {
  return {.name = kName,
          .prefix = "model.",
          .rows = kStoredRows / 2,
          .cols = kStoredCols,
          .transposed = true,
          .stack = {.index = 1, .count = kExperts},
          .turns = {.index = 1, .count = 2}};
}

struct Packed {
  std::string blocks;
  std::string scales;
  std::string blocks_shape = "[3,10,3,16]";
  std::string scales_shape = "[3,10,3]";
  std::string dtype = "U8";
  Json quantization = {{"quant_method", "mxfp4"}};

  Packed() {
    for (int64_t i = 0; i < kExperts * kStoredRows * kStoredCols / 2; ++i) {
      blocks.push_back(static_cast<char>(i * 37 % 256));
    }
    for (int64_t i = 0; i < kExperts * kStoredRows * kStoredCols / 32; ++i) {
      scales.push_back(static_cast<char>(120 + i % 10));
    }
  }

  MemorySource files() const {
    return MemorySource(
        {{"model.safetensors",
          build_safetensors({{std::string(kName) + "_blocks", dtype, blocks_shape, blocks},
                             {std::string(kName) + "_scales", "U8", scales_shape, scales}})}});
  }
  Json config() const { return {{"quantization_config", quantization}}; }

  // As the format's description says it.
  double value(int64_t expert, int64_t row, int64_t col) const {
    constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const int64_t line = expert * kStoredRows + row;
    const auto byte =
        static_cast<uint8_t>(blocks[static_cast<size_t>(line * kStoredCols / 2 + col / 2)]);
    const int code = col % 2 == 0 ? byte & 15 : byte >> 4;
    const auto exponent =
        static_cast<uint8_t>(scales[static_cast<size_t>(line * kStoredCols / 32 + col / 32)]);
    return std::ldexp(code >= 8 ? -kValues[code - 8] : kValues[code], exponent - 127);
  }
};

HostWeight load_packed(const Packed& packed, Range rows, Range cols, bool as_numbers = false) {
  return read_block(packed.files(), packed.config(), up_of_one(), rows, cols,
                    as_numbers ? std::optional(MatrixStorage(DType::kF32)) : std::nullopt);
}

WeightProblems problems_of(const Packed& packed, const MatrixSpec& spec) {
  return matrix_problems(packed.files(), packed.config(), spec);
}

}  // namespace

TEST_CASE("mxfp4 is read as the codes and powers of two that it is made of, whole and in parts") {
  const Packed packed;
  for (const auto& [rows, cols] : {std::pair{Range{0, 5}, Range{0, 96}},
                                   {Range{1, 3}, Range{32, 64}},
                                   {Range{4, 1}, Range{64, 32}}}) {
    const HostWeight got = load_packed(packed, rows, cols);
    REQUIRE(got.format == "grouped");
    REQUIRE(got.grouped.group_size == 32);
    CHECK(got.grouped.zeros == nullptr);
    for (int64_t row = 0; row < rows.count; ++row) {
      for (int64_t col = 0; col < cols.count; ++col) {
        const float scale = got.grouped.scales[row * got.grouped.num_groups + col / 32];
        const int code = got.grouped.codes[row * cols.count + col];
        CHECK(static_cast<double>(scale) * code ==
              packed.value(1, 2 * (rows.begin + row) + 1, cols.begin + col));
      }
    }
  }
}

TEST_CASE("columns that are cut within a block of mxfp4 are decoded") {
  const Packed packed;
  const Range rows = {0, 5};
  for (const Range& cols : {Range{48, 48}, Range{7, 31}}) {
    const HostWeight got = load_packed(packed, rows, cols);
    REQUIRE(got.format == "dense");
    const auto* values = reinterpret_cast<const float*>(got.parts.at(0).data);
    for (int64_t i = 0; i < rows.count * cols.count; ++i) {
      CHECK(static_cast<double>(values[i]) ==
            packed.value(1, i / cols.count * 2 + 1, cols.begin + i % cols.count));
    }
  }
  CHECK(load_packed(packed, rows, {0, 96}, true).format == "dense");
}

TEST_CASE("every exponent of mxfp4 is a power of two, and the one that is none is refused") {
  Packed packed;
  const size_t first = (kStoredRows + 1) * 3;  // of row 1 of expert 1
  for (int exponent = 0; exponent < 255; ++exponent) {
    packed.scales[first] = static_cast<char>(exponent);
    CHECK(load_packed(packed, {0, 1}, {0, 32}).grouped.scales[0] ==
          std::ldexp(1.0F, exponent - 128));
  }
  packed.scales[first] = static_cast<char>(255);
  CHECK_THROWS_WITH(load_packed(packed, {0, 1}, {0, 32}),
                    Catch::Contains("gate_up_proj_scales: element 33 is 255"));
}

TEST_CASE("blocks and scales that are missing or do not fit are told with what was expected") {
  struct Case {
    std::function<void(Packed&)> damage;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {[](Packed& packed) { packed.blocks_shape = "[3,10,6,8]"; },
       "gate_up_proj_blocks: expected (3, 10, 3, 16), got (3, 10, 6, 8)"},
      {[](Packed& packed) { packed.scales_shape = "[3,3,10]"; },
       "gate_up_proj_scales: expected (3, 10, 3), got (3, 3, 10)"},
      {[](Packed& packed) { packed.dtype = "I8"; }, "gate_up_proj_blocks: expected U8, got I8"},
  };
  for (const Case& one : cases) {
    Packed packed;
    one.damage(packed);
    const WeightProblems problems = problems_of(packed, up_of_one());
    REQUIRE(problems.misshapen.size() + problems.unsupported.size() == 1);
    CHECK((problems.misshapen.empty() ? problems.unsupported : problems.misshapen).front() ==
          "model.layers.0.mlp.experts." + std::string(one.expected));
  }
  MatrixSpec other = up_of_one();
  other.name = "model.layers.1.mlp.experts.gate_up_proj";
  CHECK(problems_of({}, other).missing ==
        std::vector<std::string>{other.name + "_blocks", other.name + "_scales"});
  MatrixSpec narrow = up_of_one();
  narrow.cols = 90;
  CHECK(problems_of({}, narrow).misshapen ==
        std::vector<std::string>{std::string(kName) + ": 90 columns can't be in blocks of 32"});
}

TEST_CASE("modules that mxfp4 leaves alone are named with any layer, and are plain") {
  const auto is_packed = [](const Json& plain, const MatrixSpec& spec) {
    const Json config = {
        {"quantization_config", {{"quant_method", "mxfp4"}, {"modules_to_not_convert", plain}}}};
    const WeightFormat& format = find_weight_format(JsonReader(config, ""));
    return !format.form_of(config, spec).quantised_as.empty();
  };
  CHECK(is_packed(nullptr, up_of_one()));
  CHECK(is_packed(Json::array({"model.layers.*.self_attn", "lm_head"}), up_of_one()));
  CHECK_FALSE(is_packed(Json::array({"model.layers.*.mlp.experts"}), up_of_one()));
  CHECK_FALSE(is_packed(Json::array({"model.layers.0.mlp"}), up_of_one()));
  CHECK(is_packed(Json::array({"model.layers.1.mlp"}), up_of_one()));
  CHECK(is_packed(Json::array({"layers.*.experts"}), up_of_one()));
  MatrixSpec alone = up_of_one();  // what is no stack of experts is not packed
  alone.stack = {};
  CHECK_FALSE(is_packed(nullptr, alone));
}

TEST_CASE("fields of mxfp4 that nobody knows are refused by name") {
  CHECK(claim_error({{"quant_method", "mxfp4"}, {"dequantize", true}}) == "");
  CHECK_THAT(claim_error({{"quant_method", "mxfp4"}, {"block_size", 16}}),
             Catch::Contains("quantization_config.block_size = 16: not a known field of mxfp4"));
  CHECK_THAT(claim_error({{"quant_method", "mxfp4"}, {"modules_to_not_convert", 3}}),
             Catch::Contains("quantization_config.modules_to_not_convert"));
}

}  // namespace tgi::mxfp4_test
