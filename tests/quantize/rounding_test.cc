#include "engine/quantize/rounding.h"

#include <algorithm>
#include <cmath>

#include "engine/weights/weight_encoder.h"
#include "tests/catch.h"
#include "tests/quantize/random_matrix.h"

namespace tgi {
namespace {

double squared_error(const FloatMatrix& a, const FloatMatrix& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double error = double{a.values[i]} - double{b.values[i]};
    sum += error * error;
  }
  return sum;
}

TEST_CASE("rounding to eight bits is off by half a step at most") {
  const FloatMatrix w = random_matrix(5, 96, 1);
  const CodeOptions options{.bits = 8, .group_size = 32, .scale_dtype = DType::kF32};
  const GroupedMatrix codes = round_to_nearest(w, {}, options, 2);
  const FloatMatrix back = dequantize(codes);
  for (size_t i = 0; i < w.values.size(); ++i) {
    const float scale = codes.scales[i / 32];
    CHECK(std::abs(w.values[i] - back.values[i]) <= 0.5001F * std::abs(scale));
  }
}

TEST_CASE("numbers that lie on a grid of codes come back as they were") {
  FloatMatrix w(2, 64);
  for (size_t i = 0; i < w.values.size(); ++i) {
    w.values[i] = 0.25F * static_cast<float>(static_cast<int>(i % 16) - 8);
  }
  for (const bool symmetric : {true, false}) {
    const CodeOptions options{.bits = 4, .group_size = 32, .symmetric = symmetric};
    const FloatMatrix back = dequantize(round_to_nearest(w, {}, options, 1));
    CHECK(squared_error(w, back) == 0.0);
  }
}

TEST_CASE("the scale of four bits is searched for, not taken from the largest value alone") {
  const FloatMatrix w = random_matrix(16, 128, 3);
  const CodeOptions options{.bits = 4, .group_size = 64};
  const FloatMatrix searched = dequantize(round_to_nearest(w, {}, options, 1));
  FloatMatrix plain(w.rows, w.cols);
  for (size_t begin = 0; begin < w.values.size(); begin += 64) {
    float largest = 0.0F;
    for (size_t i = begin; i < begin + 64; ++i) largest = std::max(largest, std::abs(w.values[i]));
    const GroupScale group{.scale = round_to_dtype(DType::kF16, largest / 7.0F)};
    for (size_t i = begin; i < begin + 64; ++i) {
      plain.values[i] = value_of(code_of(w.values[i], group, 4), group);
    }
  }
  CHECK(squared_error(w, searched) < 0.9 * squared_error(w, plain));
}

TEST_CASE("zero points pay where the numbers of a group lie to one side") {
  FloatMatrix w = random_matrix(8, 128, 4, 0.3F);
  for (float& value : w.values) value += 1.0F;
  CodeOptions options{.bits = 4, .group_size = 64};
  const double symmetric = squared_error(w, dequantize(round_to_nearest(w, {}, options, 1)));
  options.symmetric = false;
  const GroupedMatrix codes = round_to_nearest(w, {}, options, 1);
  CHECK(squared_error(w, dequantize(codes)) < 0.9 * symmetric);
  for (const int8_t zero : codes.zeros) CHECK((zero >= -8 && zero <= 7));
}

TEST_CASE("the error counts where a column is important") {
  const FloatMatrix w = random_matrix(8, 64, 5);
  std::vector<float> importance(64, 0.001F);
  for (size_t i = 0; i < 16; ++i) importance[i] = 1000.0F;
  const auto error_of_first = [&](const FloatMatrix& back) {
    double sum = 0.0;
    for (int64_t row = 0; row < w.rows; ++row) {
      for (size_t i = 0; i < 16; ++i) {
        sum += std::pow(double{w.row(row)[i]} - double{back.row(row)[i]}, 2.0);
      }
    }
    return sum;
  };
  for (const bool symmetric : {true, false}) {
    const CodeOptions options{.bits = 4, .group_size = 64, .symmetric = symmetric};
    CHECK(error_of_first(dequantize(round_to_nearest(w, importance, options, 1))) <
          error_of_first(dequantize(round_to_nearest(w, {}, options, 1))));
  }
}

TEST_CASE("a group of zeros stays zero, with a scale that can be divided by") {
  const FloatMatrix w(2, 64);
  for (const bool symmetric : {true, false}) {
    for (const int32_t bits : {4, 8}) {
      const CodeOptions options{.bits = bits, .group_size = 32, .symmetric = symmetric};
      const GroupedMatrix codes = round_to_nearest(w, {}, options, 1);
      for (const float scale : codes.scales) CHECK(scale == 1.0F);
      CHECK(squared_error(w, dequantize(codes)) == 0.0);
    }
  }
}

TEST_CASE("scales are rounded to their stored type before they are used") {
  const FloatMatrix w = random_matrix(4, 64, 6);
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const bool symmetric : {true, false}) {
      const CodeOptions options{
          .bits = 4, .group_size = 32, .symmetric = symmetric, .scale_dtype = dtype};
      for (const float scale : round_to_nearest(w, {}, options, 1).scales) {
        CHECK(round_to_dtype(dtype, scale) == scale);
      }
    }
  }
}

}  // namespace
}  // namespace tgi
