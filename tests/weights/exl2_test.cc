// The weight format "exl2": the values of its description, whole and in parts, and what does not
// fit.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/weights/golden_matrix.h"

namespace tgi::exl2_test {
namespace {

struct Exl2Matrix : GoldenMatrix {
  explicit Exl2Matrix(const std::string& name) : GoldenMatrix("exl2", name) {
    quantization = {
        {"quant_method", "exl2"}, {"version", "0.3.2"}, {"bits", 4.0}, {"head_bits", 6}};
  }
};

TEST_CASE("matrices of exl2 are the values of their codes, whole and in parts") {
  for (const char* name : {"4 and 6 bits", "all widths", "a word that is filled up"}) {
    INFO(name);
    const Exl2Matrix matrix(name);
    const MatrixSpec spec = matrix.spec();
    REQUIRE(refusal_of(matrix) == kNothingWrong);
    for (const auto& [rows, cols] : {std::pair{Range{0, spec.rows}, Range{0, spec.cols}},
                                     {Range{1, 3}, Range{5, spec.cols - 7}},
                                     {Range{spec.rows - 1, 1}, Range{spec.cols - 2, 2}},
                                     {Range{2, 0}, Range{0, spec.cols}}}) {
      CHECK(numbers_of(load_matrix(matrix, spec, rows, cols).weight) == matrix.part(rows, cols));
    }
  }
}

struct Exl2Damage {
  std::function<void(Exl2Matrix&)> damage;
  const char* expected;
};

TEST_CASE("parts of a matrix of exl2 that are missing or make no sense are named") {
  const std::vector<Exl2Damage> rows = {
      {[](Exl2Matrix& m) { m.tensors.erase("q_scale"); }, "up_proj.q_scale"},
      {[](Exl2Matrix& m) { m.tensors.erase("q_groups"); }, "up_proj.q_groups"},
      {[](Exl2Matrix& m) { m.tensors.erase("q_invperm"); }, "up_proj.q_invperm"},
      {[](Exl2Matrix& m) { m.tensors.erase("q_scale_max"); },
       "missing model.layers.0.mlp.up_proj.q_scale_max; misshapen ; unsupported "},
      {[](Exl2Matrix& m) { m.tensors.erase("q_weight"); },
       "missing model.layers.0.mlp.up_proj.weight;"},
      {[](Exl2Matrix& m) { m.tensors["q_weight"].dtype = "F32"; }, "up_proj.q_weight"},
      {[](Exl2Matrix& m) { m.shape[0] = 65; }, "up_proj.q_weight: expected (10, 96), got (10, 64)"},
      {[](Exl2Matrix& m) { m.shape[1] = 63; }, "up_proj.q_invperm: expected (63), got (64)"},
      {[](Exl2Matrix& m) { m.put("q_groups", 0, int16_t{7}); },
       "up_proj.q_groups: group 0 has 7 bits, expected 2, 3, 4, 5, 6 or 8; is the file damaged?"},
      {[](Exl2Matrix& m) { m.put("q_groups", 1, int16_t{1}); },
       "up_proj.q_groups: group 0 begins at row 1 of q_weight, expected 0"},
      {[](Exl2Matrix& m) { m.put("q_groups", 3, int16_t{5}); },
       "up_proj.q_groups: group 0 of 6 bits has rows 0 to 5 of q_weight, which does not fit inputs "
       "0 of 64 on"},
      {[](Exl2Matrix& m) { m.put("q_groups", 3, int16_t{9}); },
       "up_proj.q_groups: group 1 of 4 bits has rows 9 to 10 of q_weight, which does not fit"},
      {[](Exl2Matrix& m) { m.put("q_groups", 3, int16_t{-1}); }, "up_proj.q_groups: group 0"},
      {[](Exl2Matrix& m) { m.put("q_invperm", 3, int32_t{64}); },
       "up_proj.q_invperm: input 3 is number 64 in the order of the codes, expected each of 0 to "
       "63 "
       "once"},
      {[](Exl2Matrix& m) { m.put("q_invperm", 3, int32_t{-1}); }, "input 3 is number -1"},
      {[](Exl2Matrix& m) { m.put("q_scale_max", 1, uint16_t{0x7E00}); },
       "up_proj.q_scale_max: element 1 of (2) is nan"},
      {[](Exl2Matrix& m) { m.quantization["twist"] = 1; },
       "quantization_config.twist = 1: not a known field of exl2"},
  };
  for (const Exl2Damage& row : rows) {
    Exl2Matrix matrix("4 and 6 bits");
    row.damage(matrix);
    INFO(row.expected);
    CHECK_THAT(refusal_of(matrix), Catch::Contains(row.expected));
  }
  Exl2Matrix twice("4 and 6 bits");
  std::string& order = twice.tensors.at("q_invperm").data;
  order.replace(0, 4, order.substr(4, 4));
  CHECK_THAT(refusal_of(twice), Catch::Contains("up_proj.q_invperm: input 1 is number "));
}

}  // namespace
}  // namespace tgi::exl2_test
