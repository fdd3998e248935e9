// BitNet (engine/weights/formats/bitnet.cc): both classes, packed and unpacked, and what is
// rounded while it is loaded.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/matrix_reader.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::bitnet_test {
namespace {

constexpr const char* kDownModule = "model.layers.0.mlp.down_proj";
constexpr int64_t kDownRows = 8;
constexpr int64_t kDownCols = 160;

MatrixSpec down_matrix() {
  return {.name = std::string(kDownModule) + ".weight",
          .prefix = "model.",
          .rows = kDownRows,
          .cols = kDownCols};
}

int ternary_at(int64_t row, int64_t col) {
  return static_cast<int>((row * 7 + col * 5 + row * col) % 3) - 1;
}

Json bitnet(const char* linear_class, const char* mode) {
  return {{"quant_method", "bitnet"},
          {"linear_class", linear_class},
          {"quantization_mode", mode},
          {"modules_to_not_convert", nullptr}};
}

struct BitnetFile {
  Json quantization;
  std::string dtype;
  std::string shape;
  std::string data;
  std::vector<float> scale = {0.25F};  // empty: there is none

  Json config() const { return {{"quantization_config", quantization}}; }
  MemorySource files() const {
    std::vector<TestTensor> tensors = {{fmt::format("{}.weight", kDownModule), dtype, shape, data}};
    if (!scale.empty()) {
      tensors.push_back(
          {fmt::format("{}.weight_scale", kDownModule), "F32", "[1]", f32_bytes(scale)});
    }
    return MemorySource({{"model.safetensors", build_safetensors(tensors)}});
  }
};

BitnetFile packed_file(const char* linear_class) {
  BitnetFile out{.quantization = bitnet(linear_class, "offline"),
                 .dtype = "U8",
                 .shape = "[2,160]",
                 .data = {}};
  for (int64_t row = 0; row < kDownRows / 4; ++row) {
    for (int64_t col = 0; col < kDownCols; ++col) {
      int byte = 0;
      for (int i = 0; i < 4; ++i) byte |= (ternary_at(row + 2 * i, col) + 1) << (2 * i);
      out.data.push_back(static_cast<char>(byte));
    }
  }
  return out;
}

BitnetFile plain_file(const char* mode, float factor) {
  BitnetFile out{.quantization = bitnet("autobitlinear", mode),
                 .dtype = "F32",
                 .shape = "[8,160]",
                 .data = {}};
  std::vector<float> values;
  for (int64_t i = 0; i < kDownRows * kDownCols; ++i) {
    values.push_back(factor * static_cast<float>(ternary_at(i / kDownCols, i % kDownCols)));
  }
  out.data = f32_bytes(values);
  return out;
}

WeightProblems bitnet_problems(const BitnetFile& file, const MatrixSpec& spec = down_matrix()) {
  return matrix_problems(file.files(), file.config(), spec);
}

HostWeight bitnet_block(const BitnetFile& file, Range rows, Range cols) {
  return read_block(file.files(), file.config(), down_matrix(), rows, cols);
}

void check_ternary(const BitnetFile& file, float expected_scale) {
  for (const auto& [rows, cols] : {std::pair{Range{0, 8}, Range{0, 160}},
                                   {Range{3, 4}, Range{32, 128}},
                                   {Range{7, 1}, Range{0, 64}}}) {
    const HostWeight got = bitnet_block(file, rows, cols);
    REQUIRE(got.format == "grouped");
    REQUIRE(got.grouped.group_size == 128);
    for (int64_t row = 0; row < rows.count; ++row) {
      for (int64_t group = 0; group < got.grouped.num_groups; ++group) {
        CHECK(got.grouped.scales[row * got.grouped.num_groups + group] == expected_scale);
      }
      for (int64_t col = 0; col < cols.count; ++col) {
        CHECK(got.grouped.codes[row * cols.count + col] ==
              ternary_at(rows.begin + row, cols.begin + col));
      }
    }
  }
}

std::string bitnet_failure(const BitnetFile& file) {
  return block_failure(file.files(), file.config(), down_matrix());
}

std::string bitnet_refusal(const char* key, const Json& value) {
  Json quantization = bitnet("autobitlinear", "offline");
  quantization[key] = value;
  return claim_error(quantization);
}

}  // namespace

TEST_CASE(
    "bitnet's weights are -1, 0 and 1 with the scale of their class, however they are stored") {
  check_ternary(packed_file("bitlinear"), 4.0F);
  check_ternary(packed_file("autobitlinear"), 0.25F);
  check_ternary(plain_file("offline", 1.0F), 0.25F);
}

TEST_CASE("bitnet that is rounded on line has the mean of its magnitudes for a scale") {
  // Two thirds of the numbers are not 0: 3 rounds to 1 in units of the mean, 2.
  BitnetFile file = plain_file("online", 3.0F);
  file.scale.clear();
  double sum = 0;
  for (int64_t i = 0; i < kDownRows * kDownCols; ++i) {
    sum += 3 * std::abs(ternary_at(i / kDownCols, i % kDownCols));
  }
  const auto mean = static_cast<float>(sum / static_cast<double>(kDownRows * kDownCols));
  check_ternary(file, 1.0F / (1.0F / mean));
  // Nothing but zeros.
  BitnetFile zeros = plain_file("online", 0.0F);
  zeros.scale.clear();
  CHECK(bitnet_block(zeros, {0, 1}, {0, 32}).grouped.codes[0] == 0);
}

TEST_CASE("arrays of bitnet that are missing or do not fit are told with what was expected") {
  const std::string name = kDownModule;
  BitnetFile file = packed_file("autobitlinear");
  file.scale.clear();
  CHECK(bitnet_problems(file).missing == std::vector<std::string>{name + ".weight_scale"});
  file = packed_file("bitlinear");
  file.shape = "[1,320]";
  CHECK(bitnet_problems(file).misshapen ==
        std::vector<std::string>{name + ".weight: expected (2, 160), got (1, 320)"});
  file = plain_file("offline", 1.0F);
  file.quantization["linear_class"] = "bitlinear";
  CHECK(bitnet_problems(file).unsupported ==
        std::vector<std::string>{name + ".weight: expected U8, got F32"});
  file = plain_file("offline", 1.0F);
  file.shape = "[2,160]";
  file.data.resize(2 * 160 * 4);
  CHECK_THAT(bitnet_problems(file).misshapen.at(0),
             Catch::StartsWith(name + ".weight: (2, 160) of F32, expected (2, 160) of U8"));
  MatrixSpec odd = down_matrix();
  odd.rows = 6;
  CHECK(bitnet_problems(packed_file("bitlinear"), odd).misshapen ==
        std::vector<std::string>{name + ".weight: 6 rows can't be packed by 4"});
}

TEST_CASE("numbers that bitnet does not have are refused with their place") {
  BitnetFile file = packed_file("bitlinear");
  file.data[161] = static_cast<char>(0xFF);
  CHECK_THAT(bitnet_failure(file),
             Catch::Contains("element (1, 1) of the matrix is 2, expected -1, 0 or 1"));
  CHECK_THAT(bitnet_failure(plain_file("offline", 0.5F)), Catch::Contains("is -0.5, expected"));
  for (const char* linear_class : {"bitlinear", "autobitlinear"}) {
    file = packed_file(linear_class);
    file.scale = {std::nanf("")};
    CHECK_THAT(bitnet_failure(file), Catch::Contains("weight_scale: element 0"));
  }
  file = packed_file("bitlinear");
  file.scale = {0.0F};
  CHECK_THAT(bitnet_failure(file),
             Catch::Contains("weight_scale: is 0, but the matrix is divided"));
}

TEST_CASE("settings of bitnet that can't be loaded are refused by name") {
  CHECK(bitnet_refusal("rms_norm_eps", 1e-6) == "");
  CHECK(bitnet_refusal("modules_to_not_convert", {"lm_head"}) == "");
  CHECK(bitnet_refusal("bits", 2) == "");
  CHECK_THAT(bitnet_refusal("bits", 4), Catch::StartsWith("quantization_config.bits: "));
  CHECK_THAT(bitnet_refusal("linear_class", "linear"),
             Catch::StartsWith("quantization_config.linear_class: bitnet with 'linear'"));
  CHECK_THAT(bitnet_refusal("quantization_mode", "both"),
             Catch::StartsWith("quantization_config.quantization_mode: bitnet with 'both'"));
  CHECK_THAT(bitnet_refusal("use_rms_norm", true),
             Catch::StartsWith("quantization_config.use_rms_norm: "));
  CHECK_THAT(bitnet_refusal("twist", 1), Catch::Contains("not a known field of bitnet"));
}

}  // namespace tgi::bitnet_test
