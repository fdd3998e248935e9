// The weight format "hqq": the values that the library itself dequantises to, bit by bit, whole and
// in parts, and what does not fit.
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/weights/golden_matrix.h"

namespace tgi::hqq_test {
namespace {

struct HqqMatrix : GoldenMatrix {
  explicit HqqMatrix(const std::string& name) : GoldenMatrix("hqq", name) {
    quantization = {{"quant_method", "hqq"},
                    {"quant_config", {{"weight_quant_params", {{"nbits", 4}}}}},
                    {"skip_modules", {"lm_head"}}};
  }
};

TEST_CASE("matrices of hqq are the values that it has itself, whole and in parts") {
  for (const char* name :
       {"8 bits", "4 bits", "4 bits, columns", "3 bits", "3 bits, columns",
        "2 bits, one group a row", "2 bits, other words", "1.58 bits", "1 bit"}) {
    INFO(name);
    const HqqMatrix matrix(name);
    const MatrixSpec spec = matrix.spec();
    REQUIRE(refusal_of(matrix) == kNothingWrong);
    for (const auto& [rows, cols] : {std::pair{Range{0, spec.rows}, Range{0, spec.cols}},
                                     {Range{1, 3}, Range{5, spec.cols - 7}},
                                     {Range{spec.rows - 1, 1}, Range{spec.cols - 2, 2}}}) {
      CHECK(numbers_of(load_matrix(matrix, spec, rows, cols).weight) == matrix.part(rows, cols));
    }
  }
}

struct HqqDamage {
  std::function<void(HqqMatrix&)> damage;
  const char* expected;
};

TEST_CASE("parts of a matrix of hqq that are missing or make no sense are named") {
  const std::vector<HqqDamage> rows = {
      {[](HqqMatrix& m) { m.tensors.erase("scale"); }, "missing model.layers.0.mlp.up_proj.scale;"},
      {[](HqqMatrix& m) { m.tensors.erase("zero"); }, "missing model.layers.0.mlp.up_proj.zero;"},
      {[](HqqMatrix& m) { m.tensors.erase("packing"); },
       "missing model.layers.0.mlp.up_proj.packing;"},
      {[](HqqMatrix& m) { m.tensors.erase("shape"); }, "missing model.layers.0.mlp.up_proj.shape;"},
      {[](HqqMatrix& m) { m.tensors.erase("W_q"); }, "missing model.layers.0.mlp.up_proj.weight;"},
      {[](HqqMatrix& m) { m.put("shape", 0, int64_t{7}); },
       "up_proj.shape: expected (6, 64), got (7, 64)"},
      {[](HqqMatrix& m) { m.put("axis", 0, int32_t{2}); },
       "tensor model.layers.0.mlp.up_proj.axis: expected 0 or 1, got 2"},
      {[](HqqMatrix& m) { m.put("group_size", 0, int32_t{48 + 1}); },
       "up_proj.group_size: expected a number that divides the 384 elements"},
      {[](HqqMatrix& m) { m.put("group_size", 0, int32_t{-32}); }, "got -32"},
      {[](HqqMatrix& m) { m.put("group_size", 0, int32_t{64}); },
       "up_proj.scale: expected (6, 1), got (12, 1)"},
      {[](HqqMatrix& m) { m.put("packing", 0, '5'); },
       "up_proj.packing: hqq packed as \"5bit_u8\" can't be loaded; supported: 8bit_u8, 4bit_u8"},
      {[](HqqMatrix& m) { m.put("packing", 0, '2'); },
       "up_proj.W_q: expected 3 rows of 32 words of 1 bytes, got (6, 32) of U8"},
      {[](HqqMatrix& m) { m.put("quant_zero", 0, '\1'); },
       "up_proj.quant_zero: scales and zero points that are quantised too"},
      {[](HqqMatrix& m) { m.put("channel_wise", 0, '\0'); },
       "up_proj.channel_wise: one scale for a whole matrix"},
      {[](HqqMatrix& m) { m.put("scale", 3, uint16_t{0x7FC0}); },
       "up_proj.scale: element 3 of (12, 1) is nan"},
      {[](HqqMatrix& m) { m.tensors["axis"].dtype = "F32"; },
       "up_proj.axis: expected U8, I32 or I64, got F32"},
      {[](HqqMatrix& m) { m.quantization["twist"] = 1; },
       "quantization_config.twist = 1: not a known field of hqq"},
  };
  for (const HqqDamage& row : rows) {
    HqqMatrix matrix("4 bits");
    row.damage(matrix);
    INFO(row.expected);
    CHECK_THAT(refusal_of(matrix), Catch::Contains(row.expected));
  }
}

}  // namespace
}  // namespace tgi::hqq_test
