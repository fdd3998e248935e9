// Matrices whose 4 bits are places in a table of numbers (nf4 and fp4 of bitsandbytes): what
// devices that keep them multiply with is as near to the reference's as numbers of a table that are
// rounded to 7 bits and a sign can be, and a row has the same bits alone and among others.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"
#include "tests/real_gpu.h"

namespace tgi::table_codes_test {
namespace {

struct Shape {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t outputs = 0;
  int32_t group_size = 64;
};

void allocate(Device& device) {
  device.allocate_state({.num_layers = 1,
                         .num_kv_heads = 1,
                         .head_dim = 16,
                         .block_size = 16,
                         .num_blocks = 4,
                         .dtype = device.info().activation_dtype},
                        {.num_slots = 1,
                         .max_blocks_per_slot = 4,
                         .max_batch_tokens = 64,
                         .vocab_size = 64,
                         .block_size = 16,
                         .max_matmul_cols = 1024});
}

Floats multiply(Device& device, const Matrix& w, const Floats& x, int64_t rows) {
  const DType dtype = device.info().activation_dtype;
  DeviceTensor in(device, rows, w.cols, x);
  DeviceTensor out(device, rows, w.rows, dtype);
  run_step(device, one_sequence({0}),
           [&] { device.matmul({.x = in.view(), .w = &w, .out = out.view()}); });
  return out.read();
}

// Of x, rounded to int8 with the largest of a group, of which it keeps what is a multiple of its
// 127th part: here nothing is rounded.
Floats exact_x(Random& random, const Shape& shape) {
  Floats x;
  for (int64_t i = 0; i < shape.rows * shape.cols; ++i) {
    const bool is_largest = i % shape.cols % shape.group_size == 0;
    x.push_back(static_cast<float>(is_largest ? 127 : random.integer(-127, 127)) / 127.0F);
  }
  return x;
}

}  // namespace

TEST_CASE("codes that are places in a table are multiplied with as the table's numbers") {
  for (const Quantization kind : {Quantization::kNf4, Quantization::kFp4}) {
    for (const Shape& shape :
         {Shape{.rows = 1, .cols = 64, .outputs = 16}, Shape{.rows = 3, .cols = 320, .outputs = 50},
          Shape{.rows = 40, .cols = 200, .outputs = 33},
          Shape{.rows = 33, .cols = 1024, .outputs = 70},
          Shape{.rows = 5, .cols = 96, .outputs = 20, .group_size = 32}}) {
      Random random(static_cast<uint32_t>(shape.cols + shape.rows));
      MatrixStorage storage(kind, shape.group_size);
      storage.stored = true;
      const GroupedWeight stored(random, shape.outputs, shape.cols, storage, false);
      const Floats x = exact_x(random, shape);
      const auto reference = make_reference_device();
      allocate(*reference);
      const auto exact = reference->make_matrix(std::span(&stored.weight, 1), storage);
      const Floats wanted = multiply(*reference, *exact, x, shape.rows);
      std::map<std::string, Floats> of_group;
      for (const DeviceCase& device_case : device_cases()) {
        const auto device = device_case.make();
        if (!device->info().keeps.stored_tables) continue;
        INFO(fmt::format("{} of ({}, {}) on {}, {} rows", quantization_name(kind), shape.outputs,
                         shape.cols, device_case.name, shape.rows));
        allocate(*device);
        const auto w = device->make_matrix(std::span(&stored.weight, 1), storage);
        CHECK(w->size_bytes ==
              device->matrix_bytes(storage.format(), storage, shape.outputs, shape.cols));
        const Floats all = multiply(*device, *w, x, shape.rows);
        // No number of a table is further away than 0.0053 of a scale.
        constexpr double kLargestScale = 1.5 / 32.0;
        const double allowed = static_cast<double>(shape.cols) * 0.0053 * kLargestScale;
        double largest = 0.0;
        for (size_t i = 0; i < all.size(); ++i) {
          largest = std::max(largest, std::abs(double{all[i]} - double{wanted[i]}));
        }
        CHECK(largest <= allowed);
        CHECK(largest <= 0.02 * std::sqrt(static_cast<double>(shape.cols)) * kLargestScale);
        Floats one_by_one;
        for (int64_t row = 0; row < shape.rows; ++row) {
          const auto begin = x.begin() + row * shape.cols;
          const Floats alone = multiply(*device, *w, Floats(begin, begin + shape.cols), 1);
          one_by_one.insert(one_by_one.end(), alone.begin(), alone.end());
        }
        CHECK(same_bits(one_by_one, all));
        const auto [first, is_new] = of_group.try_emplace(device_case.bit_group, all);
        if (!is_new) CHECK(same_bits(first->second, all));
      }
      // A GPU decodes tables.
      CHECK(of_group.empty() == is_for_real_gpu());
    }
  }
}

TEST_CASE("a table that is not the storage's is refused by name") {
  const auto device = make_reference_device();
  Random random(1);
  MatrixStorage storage(Quantization::kNf4, 64);
  storage.stored = true;
  GroupedWeight stored(random, 16, 64, storage, false);
  stored.weight.grouped.table = kFp4Values;
  CHECK_THROWS_WITH(device->make_matrix(std::span(&stored.weight, 1), storage),
                    "test.weight: expected the codes of another table");
  stored.weight.grouped.table = kNf4Values;
  storage.quantization = Quantization::kInt4;
  CHECK_THROWS_WITH(device->make_matrix(std::span(&stored.weight, 1), storage),
                    "test.weight: has a table that was not planned for");
}

}  // namespace tgi::table_codes_test
