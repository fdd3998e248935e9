// Floats of 4 bits in compressed-tensors and in Model Optimizer's checkpoints: every code and
// scale, parts of a matrix, what does not fit.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/weights/fp4_file.h"

namespace tgi::fp4_test {

TEST_CASE("floats of 4 bits are read as integers times scales, whole and in parts, exactly") {
  for (const Fp4File& file : all_fp4_files()) {
    INFO(file.quantization);
    for (const auto& [rows, cols] : {std::pair{Range{0, 6}, Range{0, 96}},
                                     {Range{1, 3}, Range{32, 64}},
                                     {Range{5, 1}, Range{64, 32}}}) {
      const HostWeight got = fp4_block(file, rows, cols);
      REQUIRE(got.format == "grouped");
      REQUIRE(got.grouped.group_size == file.group_size);
      CHECK(got.grouped.zeros == nullptr);
      for (int64_t row = 0; row < rows.count; ++row) {
        for (int64_t col = 0; col < cols.count; ++col) {
          const float scale =
              got.grouped.scales[row * got.grouped.num_groups + col / file.group_size];
          const int code = got.grouped.codes[row * cols.count + col];
          CHECK(scale * static_cast<float>(code) == file.value(rows.begin + row, cols.begin + col));
        }
      }
    }
  }
}

TEST_CASE("columns that are cut within a group of floats of 4 bits are decoded") {
  for (const Fp4File& file : all_fp4_files()) {
    INFO(file.quantization);
    const Range rows = {0, 6};
    for (const Range& cols : {Range{40, 56}, Range{7, 31}}) {
      const HostWeight got = fp4_block(file, rows, cols);
      REQUIRE(got.format == "dense");
      const auto* values = reinterpret_cast<const float*>(got.parts.at(0).data);
      for (int64_t i = 0; i < rows.count * cols.count; ++i) {
        CHECK(values[i] == file.value(i / cols.count, cols.begin + i % cols.count));
      }
    }
  }
}

TEST_CASE("arrays of floats of 4 bits that are missing or do not fit are told all at once") {
  for (Fp4File file : all_fp4_files()) {
    INFO(file.quantization);
    const int64_t groups = kUpCols / file.group_size;
    file.tensor("weight_scale").shape = fmt::format("[1,{}]", kUpRows * groups);
    CHECK(fp4_problems(file).misshapen ==
          std::vector<std::string>{fmt::format("{}.weight_scale: expected (6, {}), got (1, {})",
                                               kUp, groups, kUpRows * groups)});
    file.erase("weight_scale");
    CHECK(fp4_problems(file).missing ==
          std::vector<std::string>{fmt::format("{}.weight_scale", kUp)});
    MatrixSpec narrow = named_matrix(kUp);
    narrow.cols = 72;
    CHECK(fp4_problems(file, narrow).misshapen ==
          std::vector<std::string>{
              fmt::format("{}.weight: 72 columns can't be in groups of {}", kUp, file.group_size)});
  }
  for (Fp4File file : {compressed_nvfp4(), modelopt_nvfp4()}) {
    file.tensor("weight_scale").dtype = "U8";
    CHECK(fp4_problems(file).unsupported ==
          std::vector<std::string>{fmt::format("{}.weight_scale: expected F8_E4M3, got U8", kUp)});
    file.tensor("weight_scale").dtype = "F8_E4M3";
    file.erase(file.scale_of_all_name);
    CHECK(fp4_problems(file).missing ==
          std::vector<std::string>{fmt::format("{}.{}", kUp, file.scale_of_all_name)});
  }
}

TEST_CASE("nvfp4 by group alone has one scale for all where the file has it") {
  Fp4File file = compressed_nvfp4();
  file.quantization["config_groups"]["group_0"]["weights"]["strategy"] = "group";
  const auto first_scale = [](const Fp4File& one) {
    return fp4_block(one, {0, 1}, {16, 16}).grouped.scales[0];
  };
  const float with = first_scale(file);
  file.erase("weight_global_scale");
  CHECK(with == 2 * first_scale(file) / 0.75F / 2);
}

TEST_CASE("scales of floats of 4 bits that are no numbers are refused with their place") {
  const auto with_scale = [](Fp4File file, int byte) {
    file.tensor("weight_scale").data[3] = static_cast<char>(byte);
    return fp4_failure(file);
  };
  for (const Fp4File& file : {compressed_nvfp4(), modelopt_nvfp4()}) {
    for (const int nan : {0x7F, 0xFF}) {
      CHECK_THAT(with_scale(file, nan),
                 Catch::StartsWith(fmt::format("tensor {}.weight_scale: element 3 is ", kUp)));
    }
    CHECK(with_scale(file, 0x80) == "");
  }
  for (const Fp4File& file : {compressed_mxfp4(), modelopt_mxfp4()}) {
    CHECK_THAT(with_scale(file, 255), Catch::Contains("weight_scale: element 3 is 255"));
    CHECK(with_scale(file, 0) == "");
  }
  const auto with_scale_of_all = [](Fp4File file, float value) {
    file.tensor(file.scale_of_all_name).data = f32_bytes({value});
    return fp4_failure(file);
  };
  for (const Fp4File& file : {compressed_nvfp4(), modelopt_nvfp4()}) {
    for (const float bad : {std::nanf(""), INFINITY}) {
      CHECK_THAT(with_scale_of_all(file, bad),
                 Catch::Contains(file.scale_of_all_name) && Catch::Contains("finite number"));
    }
  }
  CHECK_THAT(with_scale_of_all(compressed_nvfp4(), 0.0F),
             Catch::Contains("weight_global_scale: is 0, but the scales"));
  CHECK_THAT(with_scale_of_all(compressed_nvfp4(), 1e-38F),
             Catch::Contains("weight_scale: element ") && Catch::Contains("divided by"));
  CHECK_THAT(with_scale_of_all(modelopt_nvfp4(), 3e38F),
             Catch::Contains("weight_scale: element ") && Catch::Contains("multiplied with"));
  CHECK(with_scale_of_all(modelopt_nvfp4(), 0.0F) == "");  // a matrix of zeros
}

TEST_CASE("what compressed-tensors says of floats of 4 bits has to fit their layout") {
  const Json nvfp4 = compressed_fp4("nvfp4-pack-quantized", "tensor_group", 16);
  const Json mxfp4 = compressed_fp4("mxfp4-pack-quantized", "group", 32);
  const auto failure = [](Json quantization, const char* key, const Json& value) {
    quantization["config_groups"]["group_0"]["weights"][key] = value;
    return claim_error(quantization);
  };
  CHECK(claim_error(nvfp4) == "");
  CHECK(failure(nvfp4, "scale_dtype", "torch.float8_e4m3fn") == "");
  CHECK(failure(mxfp4, "scale_dtype", "torch.uint8") == "");
  CHECK_THAT(failure(nvfp4, "scale_dtype", "torch.uint8"), Catch::Contains("float8_e4m3fn"));
  CHECK_THAT(failure(mxfp4, "scale_dtype", "bfloat16"), Catch::Contains("supported: uint8"));
  CHECK_THAT(failure(nvfp4, "num_bits", 8), Catch::Contains("with 8 bits can't be loaded"));
  CHECK_THAT(failure(nvfp4, "type", "int"), Catch::Contains("with integers can't be loaded"));
  CHECK_THAT(failure(nvfp4, "group_size", 32), Catch::Contains("supported: 16"));
  CHECK_THAT(failure(nvfp4, "group_size", -1), Catch::Contains("groups of a row"));
  CHECK_THAT(failure(mxfp4, "group_size", 16), Catch::Contains("supported: 32"));
  CHECK_THAT(failure(mxfp4, "strategy", "tensor_group"), Catch::Contains("supported: group"));
  CHECK_THAT(failure(nvfp4, "strategy", "channel"), Catch::Contains("tensor_group, group"));
  CHECK_THAT(failure(nvfp4, "symmetric", false), Catch::Contains("zero points"));
}

}  // namespace tgi::fp4_test
