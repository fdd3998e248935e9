// Values as ggml's blocks: read back they lose no more than with ggml's own quantiser, and what no
// search should stumble over (scripts/golden/make_ggml_losses).
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "engine/weights/ggml/ggml_types.h"
#include "tests/catch.h"

namespace tgi::encode_blocks_test {
namespace {

constexpr int64_t kRows = 32;
constexpr int64_t kCols = 1024;

std::vector<float> uniform(int64_t count, uint32_t state) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    out.push_back(static_cast<float>(state >> 8) / static_cast<float>(1 << 24));
  }
  return out;
}

// Sums of four numbers around 0: small ones are the most.
std::vector<float> test_values() {
  const std::vector<float> parts = uniform(kRows * kCols * 4, 1);
  std::vector<float> out;
  for (size_t i = 0; i < parts.size(); i += 4) {
    out.push_back(((parts[i] + parts[i + 1]) + (parts[i + 2] + parts[i + 3])) - 2.0F);
  }
  return out;
}

// Of every row the same.
std::vector<float> test_importance() {
  const std::vector<float> row = uniform(kCols, 2);
  std::vector<float> out;
  for (int64_t i = 0; i < kRows; ++i) {
    for (const float value : row) out.push_back(0.05F + value * value);
  }
  return out;
}

std::vector<float> round_trip(const GgmlType& type,
                              const std::vector<float>& values,
                              const float* importance) {
  const int64_t num_blocks = static_cast<int64_t>(values.size()) / type.block_size;
  std::vector<std::byte> blocks(static_cast<size_t>(num_blocks * type.block_bytes));
  type.encode(values.data(), num_blocks, importance, blocks.data());
  std::vector<float> out(values.size());
  type.decode(blocks.data(), num_blocks, out.data());
  return out;
}

// As the script says it.
double loss(const std::vector<float>& values,
            const std::vector<float>& back,
            const std::vector<float>* importance) {
  double lost = 0;
  double all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double counts = importance == nullptr ? 1.0 : (*importance)[i];
    const double error = static_cast<double>(back[i]) - values[i];
    lost += counts * error * error;
    all += counts * values[i] * values[i];
  }
  return lost / all;
}

struct LossOfGgml {
  std::string_view type;
  double plain;
  double with_importance;
};
constexpr LossOfGgml kLosses[] = {
    {"Q8_0", 2.5712e-05, 2.5690e-05},   {"Q4_0", 6.6778e-03, 5.6270e-03},
    {"Q4_1", 5.7094e-03, 4.1377e-03},   {"Q5_0", 1.6413e-03, 1.3852e-03},
    {"Q5_1", 1.3436e-03, 9.5823e-04},   {"IQ4_NL", 5.4269e-03, 4.9498e-03},
    {"MXFP4", 1.2415e-02, 1.2602e-02},  {"Q4_K", 4.7287e-03, 4.2442e-03},
    {"Q5_K", 1.1999e-03, 1.0668e-03},   {"Q6_K", 2.9137e-04, 2.5590e-04},
    {"IQ4_XS", 5.5082e-03, 5.0521e-03},
};

}  // namespace

TEST_CASE("blocks lose no more than those of ggml's quantiser") {
  const std::vector<float> values = test_values();
  const std::vector<float> importance = test_importance();
  size_t num_encoded = 0;
  for (const GgmlType& type : ggml_types()) {
    num_encoded += type.encode != nullptr && type.is_quantised() ? 1 : 0;
  }
  CHECK(num_encoded == std::size(kLosses));
  for (const LossOfGgml& row : kLosses) {
    INFO(row.type);
    const GgmlType* type = find_ggml_type(row.type);
    REQUIRE(type != nullptr);
    REQUIRE(type->encode != nullptr);
    CHECK(loss(values, round_trip(*type, values, nullptr), nullptr) <= row.plain);
    // Both weigh large values more, ggml by the mean square of a row, which this loss does not.
    CHECK(loss(values, round_trip(*type, values, importance.data()), &importance) <=
          1.005 * row.with_importance);
  }
}

TEST_CASE("values that blocks hold exactly come back as they were") {
  for (const GgmlType& type : ggml_types()) {
    if (type.encode == nullptr || !type.is_quantised()) continue;
    INFO(type.name);
    const std::vector<float> zeros(static_cast<size_t>(2 * type.block_size), 0.0F);
    CHECK(round_trip(type, zeros, nullptr) == zeros);
    const std::vector<float> once = round_trip(type, test_values(), nullptr);
    // A second time there is next to nothing left to lose.
    CHECK(loss(once, round_trip(type, once, nullptr), nullptr) < 4e-4);
  }
}

TEST_CASE("odd blocks become numbers near them") {
  const float least = std::numeric_limits<float>::denorm_min();
  for (const GgmlType& type : ggml_types()) {
    if (type.encode == nullptr) continue;
    INFO(type.name);
    for (const float size : {least, 1e-30F, 1e-9F, 1.0F, 6e4F, 1e20F}) {
      INFO(size);
      std::vector<float> values(static_cast<size_t>(256), 0.0F);
      values[3] = size;
      values[77] = -size;
      values[200] = size / 2;
      std::vector<float> nothing(values.size(), 0.0F);  // an importance
      const float* const both[] = {nullptr, nothing.data()};
      for (const float* importance : both) {
        for (const float value : round_trip(type, values, importance)) {
          REQUIRE(std::isfinite(value));
          REQUIRE(std::fabs(value) <= 1.2F * size + 1e-6F);
        }
      }
    }
    const std::vector<float> same(256, 0.75F);
    for (const float value : round_trip(type, same, nullptr)) {
      CHECK(std::fabs(value - 0.75F) < 0.06F);
    }
  }
}

}  // namespace tgi::encode_blocks_test
