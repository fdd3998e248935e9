// Packing into panels: exact where nothing is to be rounded, the same bits from every instruction
// set, whatever the stored type and layout.
#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/panel_matrix.h"
#include "tests/catch.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

constexpr DType kPlainDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

Floats unpack(const PanelMatrix& matrix) {
  Floats out(static_cast<size_t>(matrix.rows * matrix.cols));
  for (int64_t row = 0; row < matrix.rows; ++row) {
    matrix.copy_row(row, out.data() + row * matrix.cols);
  }
  return out;
}

// What is stored, as floats.
Floats rounded(const Floats& values, DType dtype) {
  return decode(encode(values, dtype), dtype);
}

}  // namespace

TEST_CASE("packing keeps every value, rounded to the panel's type") {
  ThreadPool pool(2);
  Random random(41);
  for (const std::string_view isa : available_isas()) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1},
                                     {16, 2},
                                     {17, 31},
                                     {40, 128},
                                     {33, 129},
                                     {5, 300},
                                     {16, 256}}) {
      Floats values = random.values(rows * cols);
      values[0] = 70000.0F;             // too large for f16
      if (cols > 3) values[3] = 1e-6F;  // subnormal there
      for (const DType from : kPlainDTypes) {
        for (const DType to : kPlainDTypes) {
          for (const bool transposed : {false, true}) {
            INFO(isa << " (" << rows << ", " << cols << ") " << dtype_name(from) << " to "
                     << dtype_name(to) << " transposed " << transposed);
            const StoredMatrix stored(values, rows, cols, from, transposed);
            const PanelMatrix matrix(std::span(&stored.weight, 1), to, find_kernels(isa), pool);
            CHECK(same_bits(unpack(matrix), rounded(rounded(values, from), to)));
          }
        }
      }
    }
  }
}

TEST_CASE("matrices are the same values from every instruction set") {
  ThreadPool pool(1);
  Random random(43);
  const int64_t rows = 37;
  const int64_t cols = 203;
  for (const MatrixStorage& to : {MatrixStorage(DType::kF32),
                                  {DType::kF16},
                                  {DType::kBF16},
                                  {Quantization::kInt8, 64},
                                  {Quantization::kInt4, 32}}) {
    Floats values = random.values(rows * cols);
    if (to.quantization == Quantization::kNone) {
      values[7] = std::nanf("");
      values[9] = -std::numeric_limits<float>::infinity();
    }
    const StoredMatrix stored(values, rows, cols, DType::kF32);
    const PanelMatrix generic(std::span(&stored.weight, 1), to, find_kernels("generic"), pool);
    for (const std::string_view isa : available_isas()) {
      const PanelMatrix matrix(std::span(&stored.weight, 1), to, find_kernels(isa), pool);
      INFO(isa << " " << dtype_name(to.dtype) << " " << quantization_name(to.quantization));
      REQUIRE(matrix.size_bytes == generic.size_bytes);
      CHECK(same_bits(unpack(matrix), unpack(generic)));
    }
  }
}

TEST_CASE("quantised values are within half a step of what was stored") {
  ThreadPool pool(1);
  Random random(47);
  const int64_t rows = 20;
  const int64_t cols = 230;
  Floats values = random.values(rows * cols);
  std::fill(values.begin() + 64, values.begin() + 96, 0.0F);  // a group without a scale
  const StoredMatrix stored(values, rows, cols, DType::kF32);
  for (const int32_t group_size : {32, 64, 224}) {
    for (const auto& [kind, steps] :
         {std::pair{Quantization::kInt8, 127.0F}, {Quantization::kInt4, 7.2F}}) {
      const PanelMatrix matrix(std::span(&stored.weight, 1), {kind, group_size},
                               find_kernels("auto"), pool);
      const Floats got = unpack(matrix);
      double squares = 0.0;
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t begin = 0; begin < cols; begin += group_size) {
          const int64_t end = std::min(cols, begin + group_size);
          float largest = 0.0F;
          const auto at = [&](int64_t col) { return static_cast<size_t>(row * cols + col); };
          for (int64_t i = begin; i < end; ++i)
            largest = std::max(largest, std::fabs(values[at(i)]));
          for (int64_t i = begin; i < end; ++i) {
            const float error = std::fabs(got[at(i)] - values[at(i)]);
            squares += error * error;
            // An int4 scale may cut the largest value off by up to a fifth.
            const float allowed =
                kind == Quantization::kInt8 ? 0.51F * largest / steps : 0.2F * largest;
            REQUIRE(error <= allowed * 1.01F);
          }
        }
      }
      // Uniform values below 1: the mean squared error of rounding to steps is step^2 / 12.
      const double mean = squares / static_cast<double>(rows * cols);
      CHECK(mean < 1.1 / (12.0 * steps * steps));
    }
  }
}

TEST_CASE("a group size without kernels is refused") {
  ThreadPool pool(1);
  const StoredMatrix stored(Floats(64, 1.0F), 1, 64, DType::kF32);
  for (const int32_t group_size : {0, 16, 33, 512}) {
    CHECK_THROWS_WITH(PanelMatrix(std::span(&stored.weight, 1), {Quantization::kInt8, group_size},
                                  find_kernels("generic"), pool),
                      Catch::Contains(std::to_string(group_size)));
  }
}

TEST_CASE("a piece that does not fit is refused with its shape") {
  ThreadPool pool(1);
  StoredMatrix stored(Floats(6, 1.0F), 2, 3, DType::kF32);
  stored.weight.rows = 3;
  CHECK_THROWS_WITH(
      PanelMatrix(std::span(&stored.weight, 1), DType::kF32, find_kernels("generic"), pool),
      Catch::Contains("expected (3, 3), got (2, 3)"));
}

TEST_CASE("an instruction set that is unknown is refused with the known ones") {
  CHECK_THROWS_WITH(find_kernels("sse9"), Catch::Contains("generic"));
  CHECK(find_kernels("auto").isa == available_isas().front());
  CHECK(available_isas().back() == "generic");
}

}  // namespace tgi
