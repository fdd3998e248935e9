// torchao (engine/weights/formats/torchao.cc): its classes, granularities and zero points, and what
// is refused.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/weights/weight_format.h"
#include "tests/catch.h"
#include "tests/weights/matrix_reader.h"
#include "tests/weights/safetensors_builder.h"

namespace tgi::torchao_test {
namespace {

constexpr const char* kGateModule = "model.layers.0.mlp.gate_proj";
constexpr int64_t kGateRows = 4;
constexpr int64_t kGateCols = 128;

MatrixSpec gate_matrix() {
  return {.name = std::string(kGateModule) + ".weight",
          .prefix = "model.",
          .rows = kGateRows,
          .cols = kGateCols};
}

Json of_torch(const char* type, const Json& data) {
  return {{"_type", type}, {"_version", 1}, {"_data", data}};
}

Json torchao(const char* name, const Json& members) {
  return {{"quant_method", "torchao"},
          {"modules_to_not_convert", nullptr},
          {"include_input_output_embeddings", false},
          {"quant_type", {{"default", {{"_type", name}, {"_version", 2}, {"_data", members}}}}}};
}

Json int4_members(const char* mapping) {
  return {{"weight_dtype", of_torch("torch.dtype", "int4")},
          {"granularity", of_torch("PerGroup", {{"group_size", 32}})},
          {"mapping_type", of_torch("MappingType", mapping)},
          {"intx_packing_format", of_torch("IntxPackingFormat", "UNPACKED_TO_INT8")}};
}

struct TorchaoFile {
  Json quantization;
  std::vector<TestTensor> tensors{};
  std::vector<int8_t> codes{};
  std::vector<float> scales{};
  std::vector<int8_t> zeros{};

  Json config() const { return {{"quantization_config", quantization}}; }
  MemorySource files() const {
    return MemorySource({{"model.safetensors", build_safetensors(tensors)}});
  }
};

std::string text_of(const std::vector<int8_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size()};
}

// `top`: codes are -top - 1 to top.
TorchaoFile integers_file(
    const Json& quantization, int top, const char* shape, int64_t num_scales, bool has_zeros) {
  TorchaoFile out{.quantization = quantization};
  for (int64_t i = 0; i < kGateRows * kGateCols; ++i) {
    out.codes.push_back(static_cast<int8_t>(i * 7 % (2 * top + 2) - top - 1));
  }
  for (int64_t i = 0; i < num_scales; ++i) {
    out.scales.push_back(0.5F + static_cast<float>(i));
    out.zeros.push_back(static_cast<int8_t>(has_zeros ? i % 7 - 3 : 0));
  }
  const std::string name = fmt::format("{}._weight_", kGateModule);
  out.tensors = {{name + "qdata", "I8", "[4,128]", text_of(out.codes)},
                 {name + "scale", "F32", shape, f32_bytes(out.scales)},
                 {name + "zero_point", "I8", shape, text_of(out.zeros)}};
  return out;
}

TorchaoFile int4_file(bool has_zeros) {
  return integers_file(
      torchao("IntxWeightOnlyConfig", int4_members(has_zeros ? "ASYMMETRIC" : "SYMMETRIC")), 7,
      "[4,4]", 16, has_zeros);
}

WeightProblems torchao_problems(const TorchaoFile& file) {
  return matrix_problems(file.files(), file.config(), gate_matrix());
}

HostWeight torchao_block(const TorchaoFile& file, Range rows, Range cols) {
  return read_block(file.files(), file.config(), gate_matrix(), rows, cols);
}

// `cols_of_scale`: columns that share one; 0: all share it, rows too.
void check_integers(const TorchaoFile& file, int64_t cols_of_scale) {
  const int64_t groups = cols_of_scale == 0 ? 1 : kGateCols / cols_of_scale;
  for (const auto& [rows, cols] : {std::pair{Range{0, 4}, Range{0, 128}},
                                   {Range{1, 2}, Range{32, 96}},
                                   {Range{3, 1}, Range{64, 32}}}) {
    const HostWeight got = torchao_block(file, rows, cols);
    REQUIRE(got.format == "grouped");
    const GroupedPart& part = got.grouped;
    for (int64_t row = 0; row < rows.count; ++row) {
      for (int64_t col = 0; col < cols.count; ++col) {
        const int64_t stored_col = cols.begin + col;
        const auto from = static_cast<size_t>(
            cols_of_scale == 0 ? 0 : (rows.begin + row) * groups + stored_col / cols_of_scale);
        const int64_t group = row * part.num_groups + col / part.group_size;
        CHECK(part.scales[group] == file.scales[from]);
        CHECK((part.zeros == nullptr ? 0 : part.zeros[group]) == file.zeros[from]);
        CHECK(part.codes[row * cols.count + col] ==
              file.codes[static_cast<size_t>((rows.begin + row) * kGateCols + stored_col)]);
      }
    }
  }
}

std::string torchao_failure(const TorchaoFile& file) {
  return block_failure(file.files(), file.config(), gate_matrix());
}

}  // namespace

TEST_CASE("torchao's integers are read as they are, by group, row and tensor") {
  check_integers(int4_file(true), 32);
  check_integers(int4_file(false), 32);
  const Json row = {{"granularity", of_torch("PerRow", {{"dim", -1}})}};
  check_integers(integers_file(torchao("Int8WeightOnlyConfig", row), 127, "[4,1]", 4, false), 128);
  const Json tensor = {{"granularity", of_torch("PerTensor", Json::object())}};
  for (const char* shape : {"[1,1]", "[1]", "[]"}) {
    TorchaoFile file = integers_file(torchao("Int8DynamicActivationInt8WeightConfig", tensor), 127,
                                     shape, 1, false);
    if (std::string(shape) == "[1]") file.tensors.pop_back();  // zero points need not be there
    check_integers(file, 0);
  }
  const Json axis = {{"weight_granularity", of_torch("PerAxis", {{"axis", 0}})},
                     {"weight_mapping_type", of_torch("MappingType", "ASYMMETRIC")},
                     {"weight_dtype", of_torch("torch.dtype", "int8")}};
  check_integers(
      integers_file(torchao("Int8DynamicActivationIntxWeightConfig", axis), 127, "[4,1]", 4, true),
      128);
}

TEST_CASE("torchao's arrays that are missing or do not fit are told with what was expected") {
  const std::string name = std::string(kGateModule) + "._weight_";
  TorchaoFile file = int4_file(true);
  file.tensors.pop_back();
  CHECK(torchao_problems(file).missing == std::vector<std::string>{name + "zero_point"});
  file = int4_file(true);
  file.tensors[1].shape = "[16,1]";
  CHECK(torchao_problems(file).misshapen ==
        std::vector<std::string>{name + "scale: expected (4, 4), got (16, 1)"});
  file = int4_file(true);
  file.tensors[0].dtype = "U8";
  CHECK(torchao_problems(file).unsupported ==
        std::vector<std::string>{name + "qdata: expected I8, got U8"});
  file = int4_file(true);
  Json& data = file.quantization["quant_type"]["default"]["_data"];
  data["granularity"] = of_torch("PerGroup", {{"group_size", 48}});
  CHECK(torchao_problems(file).misshapen ==
        std::vector<std::string>{std::string(kGateModule) +
                                 ".weight: 128 columns can't be in groups of 48"});
}

TEST_CASE("numbers that torchao's settings rule out are refused with their place") {
  TorchaoFile file = int4_file(true);
  file.tensors[0].data[130] = 8;
  CHECK_THAT(torchao_failure(file), Catch::Contains("qdata: element 130 is 8, expected -8 to 7"));
  file = int4_file(false);
  file.tensors[2].data[5] = 1;
  CHECK_THAT(torchao_failure(file), Catch::Contains("zero_point: element 5 is not 0"));
  file = int4_file(false);
  file.scales[2] = std::nanf("");
  file.tensors[1].data = f32_bytes(file.scales);
  CHECK_THAT(torchao_failure(file), Catch::Contains("_weight_scale: element 2"));
}

TEST_CASE("settings of torchao that can't be loaded are refused by path") {
  const auto with = [](const char* key, const Json& value) {
    Json members = int4_members("SYMMETRIC");
    members[key] = value;
    return claim_error(torchao("IntxWeightOnlyConfig", members));
  };
  const std::string members = "quantization_config.quant_type.default._data";
  CHECK(with("scale_dtype", nullptr) == "");
  CHECK_THAT(with("twist", 1), Catch::StartsWith(members + ".twist = 1: not a known field"));
  CHECK_THAT(with("group_size", 32), Catch::StartsWith(members + ".group_size"));
  CHECK_THAT(with("intx_packing_format", of_torch("IntxPackingFormat", "OPAQUE_ATEN_KLEIDIAI")),
             Catch::StartsWith(members + ".intx_packing_format: torchao's 'OPAQUE_"));
  CHECK_THAT(with("weight_dtype", of_torch("torch.dtype", "uint4")),
             Catch::Contains("weight_dtype: torchao's 'uint4'"));
  CHECK_THAT(with("granularity", of_torch("PerAxis", {{"axis", 1}})),
             Catch::Contains("granularity._type: torchao's 'PerAxis'"));
  CHECK_THAT(claim_error(torchao("Int4WeightOnlyConfig", {{"group_size", 32}})),
             Catch::Contains("default._type: torchao's 'Int4WeightOnlyConfig'") &&
                 Catch::Contains("tgi quantize"));
  Json old = torchao("Int8WeightOnlyConfig", Json::object());
  old["quant_type"]["default"]["_version"] = 1;
  CHECK_THAT(claim_error(old), Catch::Contains("default._version"));
  old["quant_type"] = "int8_weight_only";
  CHECK_THAT(claim_error(old),
             Catch::StartsWith("quantization_config.quant_type: torchao's 'int8_weight_only'"));
  Json embedded = torchao("Int8WeightOnlyConfig", Json::object());
  embedded["include_input_output_embeddings"] = true;
  CHECK_THAT(claim_error(embedded), Catch::Contains("include_input_output_embeddings"));
}

}  // namespace tgi::torchao_test
