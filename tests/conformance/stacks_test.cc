// Matrices one below the other, each held in its own way: what a row is multiplied to is, to the
// bit, what each of them gives alone.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi::stacks_test {
namespace {

constexpr int64_t kCols = 512;

MatrixStorage stored_as(Quantization kind, int32_t group_size, ScaleForm scales, bool minima) {
  MatrixStorage storage(kind, group_size);
  storage.stored = true;
  storage.scales = scales;
  storage.minima = minima;
  return storage;
}

// As files of Q4_K_M and their like have q, k and v.
std::vector<MatrixStorage> storages() {
  return {stored_as(Quantization::kInt4, 32, ScaleForm::kFactors, true),
          stored_as(Quantization::kInt6, 16, ScaleForm::kFactors, false),
          stored_as(Quantization::kInt8, 32, ScaleForm::kF16, false), MatrixStorage(DType::kBF16)};
}

class Parts {
 public:
  Parts(Device& device, std::span<const int64_t> rows) : device_(device) {
    Random random(7);
    const std::vector<MatrixStorage> all = storages();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].stored) {
        const GroupedWeight stored(random, rows[i], kCols, all[i], false);
        made.push_back(device.make_matrix(std::span(&stored.weight, 1), all[i]));
      } else {
        made.push_back(make_matrix(device, random.values(rows[i] * kCols), rows[i], kCols, all[i]));
      }
      biases.push_back(random.values(rows[i]));
    }
  }

  Floats multiply(const Matrix& w, const Floats& x, int64_t rows, const Floats* bias) {
    DeviceTensor in(device_, rows, kCols, x);
    DeviceTensor out(device_, rows, w.rows, device_.info().activation_dtype);
    std::optional<DeviceTensor> held_bias;
    Tensor view;
    if (bias != nullptr) {
      held_bias.emplace(DeviceTensor::vector(device_, *bias));
      view = held_bias->view();
    }
    const Tensor* const given = bias == nullptr ? nullptr : &view;
    run_step(device_, one_sequence({0}),
             [&] { device_.matmul({.x = in.view(), .w = &w, .bias = given, .out = out.view()}); });
    return out.read();
  }

  std::vector<std::unique_ptr<Matrix>> made;
  std::vector<Floats> biases;

 private:
  Device& device_;
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
                         .max_matmul_cols = kCols});
}

}  // namespace

TEST_CASE("a stack of matrices gives what each of them gives alone") {
  bool any_stacks = false;
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    if (!device->info().keeps.stacks) continue;
    any_stacks = true;
    allocate(*device);
    for (const auto& rows : {std::array<int64_t, 4>{64, 32, 16, 48}, {21, 5, 1, 34}}) {
      for (const int64_t num_rows : {1, 3, 40}) {
        for (const bool has_bias : {false, true}) {
          INFO(fmt::format("{}: {} rows, first part {}, bias {}", device_case.name, num_rows,
                           rows[0], has_bias));
          Random random(static_cast<uint32_t>(num_rows));
          const Floats x = random.values(num_rows * kCols);
          Parts parts(*device, rows);
          std::vector<Floats> alone;
          Floats bias;
          int64_t size_bytes = 0;
          for (size_t i = 0; i < parts.made.size(); ++i) {
            alone.push_back(
                parts.multiply(*parts.made[i], x, num_rows, has_bias ? &parts.biases[i] : nullptr));
            bias.insert(bias.end(), parts.biases[i].begin(), parts.biases[i].end());
            size_bytes += parts.made[i]->size_bytes;
          }
          Floats expected;
          for (int64_t row = 0; row < num_rows; ++row) {
            for (size_t i = 0; i < alone.size(); ++i) {
              const auto begin = alone[i].begin() + row * rows[i];
              expected.insert(expected.end(), begin, begin + rows[i]);
            }
          }
          const auto stack = device->stack_matrices(std::move(parts.made));
          CHECK(stack->rows == rows[0] + rows[1] + rows[2] + rows[3]);
          CHECK(stack->cols == kCols);
          CHECK(stack->size_bytes == size_bytes);
          CHECK(
              same_bits(parts.multiply(*stack, x, num_rows, has_bias ? &bias : nullptr), expected));
        }
      }
    }
  }
  CHECK(any_stacks);
}

TEST_CASE("a device without stacks refuses them") {
  const auto device = make_reference_device();
  REQUIRE_FALSE(device->info().keeps.stacks);
  CHECK_THROWS_WITH(device->stack_matrices({}), Catch::Contains("stacks of matrices"));
}

}  // namespace tgi::stacks_test
