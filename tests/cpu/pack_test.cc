// Packing into panels: exact where nothing is to be rounded, the same bits from every instruction
// set, whatever the stored type and layout.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/panel_matrix.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

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
      for (const DType from : kDTypes) {
        for (const DType to : kDTypes) {
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

TEST_CASE("panels are the same bytes from every instruction set") {
  ThreadPool pool(1);
  Random random(43);
  const int64_t rows = 37;
  const int64_t cols = 203;
  Floats values = random.values(rows * cols);
  values[7] = std::nanf("");
  values[9] = -std::numeric_limits<float>::infinity();
  for (const DType to : kDTypes) {
    const StoredMatrix stored(values, rows, cols, DType::kF32);
    const PanelMatrix generic(std::span(&stored.weight, 1), to, find_kernels("generic"), pool);
    for (const std::string_view isa : available_isas()) {
      const PanelMatrix matrix(std::span(&stored.weight, 1), to, find_kernels(isa), pool);
      INFO(isa << " " << dtype_name(to));
      REQUIRE(matrix.size_bytes == generic.size_bytes);
      CHECK(std::memcmp(matrix.panel(0), generic.panel(0),
                        static_cast<size_t>(matrix.size_bytes)) == 0);
    }
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
