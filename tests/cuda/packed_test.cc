// Packed integers where tests/conformance does not go: rows of whole vectors through the kernels
// for few and for many rows, a row's bits, embeddings, memory.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/tensor/float8.h"
#include "tests/catch.h"
#include "tests/conformance/harness.h"
#include "tests/cuda/emulated_backend.h"

namespace tgi::cuda {
namespace {

constexpr int64_t kOutputs = 150;  // the last panel, and the last block of 128, are not full
constexpr int64_t kCols = 1096;    // ends within a unit and a chunk; enough to be shared by blocks

MatrixStorage storage_as(Quantization kind, int32_t group_size, bool zero_points = false) {
  MatrixStorage out(kind, group_size);
  out.stored = true;
  out.zero_points = zero_points;
  return out;
}

MatrixStorage with_minima(MatrixStorage storage, ScaleForm scales) {
  storage.minima = true;
  storage.scales = scales;
  return storage;
}

// Every kind of codes and of scales, groups of 16, 32, one that is no power of two, and large ones.
std::vector<MatrixStorage> packed_storages() {
  std::vector<MatrixStorage> out = {
      storage_as(Quantization::kInt4, 128),
      storage_as(Quantization::kInt4, 96, true),
      with_minima(storage_as(Quantization::kInt4, 32), ScaleForm::kFactors),
      with_minima(storage_as(Quantization::kInt4, 16), ScaleForm::kF16),
      storage_as(Quantization::kInt8, 64, true),
      storage_as(Quantization::kMxfp4, kMxfp4GroupSize),
      with_minima(storage_as(Quantization::kInt5, 32), ScaleForm::kFactors),
      storage_as(Quantization::kInt6, 16),
      storage_as(Quantization::kF8E4M3, 128),
      storage_as(Quantization::kIq4, 32)};
  out.back().scales = ScaleForm::kF16;
  return out;
}

std::string text_of(const MatrixStorage& storage) {
  return fmt::format("{} in groups of {}, zero points {}, minima {}, scales {}",
                     quantization_name(storage.quantization), storage.group_size,
                     storage.zero_points, storage.minima, static_cast<int>(storage.scales));
}

double weight_at(const GroupedWeight& stored,
                 const MatrixStorage& storage,
                 int64_t row,
                 int64_t col) {
  const GroupedPart& part = stored.weight.grouped;
  const int64_t group = row * part.num_groups + col / part.group_size;
  const int zero = part.zeros == nullptr ? 0 : part.zeros[group];
  const double minimum = part.minima == nullptr ? 0.0 : double{part.minima[group]};
  const int8_t code = part.codes[row * stored.weight.cols + col];
  const double value = storage.quantization == Quantization::kF8E4M3
                           ? double{e4m3_to_f32(static_cast<uint8_t>(code))}
                           : code - zero;
  return double{part.scales[group]} * value + minimum;
}

std::unique_ptr<Device> device_with(DType dtype, bool deterministic = false) {
  DeviceOptions options;
  options.dtype = dtype;
  options.deterministic = deterministic;
  auto device = tested_backend().make_device(options);
  allocate_small_state(*device);
  return device;
}

Floats multiply(Device& device, const Matrix& w, const Floats& x, const Floats& bias) {
  const auto rows = static_cast<int64_t>(x.size()) / w.cols;
  const DeviceTensor in(device, rows, w.cols, x);
  DeviceTensor out(device, rows, w.rows, device.info().activation_dtype);
  const DeviceTensor added = DeviceTensor::vector(device, bias);
  run_step(device, one_sequence({0}), [&] {
    device.matmul({.x = in.view(), .w = &w, .bias = &added.view(), .out = out.view()});
  });
  return out.read();
}

// What a product may be off by: integers times x are exact, so that sums in f32 and one rounding of
// the result are all. With many rows each weight is rounded too.
double worst_product(const GroupedWeight& stored,
                     const MatrixStorage& storage,
                     const Floats& x,
                     const Floats& bias,
                     const Floats& got,
                     DType dtype,
                     bool rounds_weights) {
  std::vector<double> weights;
  for (int64_t row = 0; row < kOutputs; ++row) {
    for (int64_t col = 0; col < kCols; ++col) {
      weights.push_back(weight_at(stored, storage, row, col));
    }
  }
  double worst = 0.0;
  for (size_t row = 0; row < x.size() / kCols; ++row) {
    for (size_t output = 0; output < kOutputs; ++output) {
      double sum = bias[output];
      double squares = 0.0;
      double magnitude = 1.0;
      for (size_t col = 0; col < kCols; ++col) {
        const double product = weights[output * kCols + col] * double{x[row * kCols + col]};
        sum += product;
        squares += product * product;
        magnitude += std::abs(product);
      }
      double allowed = std::abs(sum) * roundoff(dtype) + magnitude * 0x1p-20;
      if (rounds_weights) allowed += 6.0 * std::sqrt(squares) * roundoff(dtype);
      const double off = std::abs(sum - double{got[row * kOutputs + output]});
      worst = std::isnan(off) ? INFINITY : std::max(worst, off / allowed);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("packed integers: few rows are multiplied with them as they are, many with them rounded",
          "[gpu]") {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    if (kUnderSanitizers && dtype == DType::kF16) continue;
    const auto device = device_with(dtype);
    for (const MatrixStorage& storage : packed_storages()) {
      Random random(static_cast<uint32_t>(storage.group_size));
      const GroupedWeight stored(random, kOutputs, kCols, storage, false);
      const auto w = device->make_matrix(std::span(&stored.weight, 1), storage);
      const Floats bias = random.values(kOutputs);
      for (const int64_t rows : {3, 12, 20, 50, 70}) {
        INFO(dtype_name(dtype) << ": " << rows << " rows, " << text_of(storage));
        const Floats x = random.values(rows * kCols);
        const Floats got = multiply(*device, *w, x, bias);
        CHECK(worst_product(stored, storage, x, bias, got, dtype, rows > 64) <= 1.0);
      }
    }
  }
}

TEST_CASE("a row's bits with packed integers do not depend on the others when deterministic",
          "[gpu]") {
  const auto device = device_with(DType::kBF16, true);
  for (const MatrixStorage& storage : packed_storages()) {
    INFO(text_of(storage));
    Random random(static_cast<uint32_t>(storage.group_size));
    const GroupedWeight stored(random, kOutputs, kCols, storage, false);
    const auto w = device->make_matrix(std::span(&stored.weight, 1), storage);
    const Floats bias = random.values(kOutputs);
    const Floats x = random.values(66 * kCols);
    const Floats all = multiply(*device, *w, x, bias);
    for (const int64_t row : {0, 9, 65}) {
      const auto begin = x.begin() + row * kCols;
      const Floats alone = multiply(*device, *w, Floats(begin, begin + kCols), bias);
      const auto same = all.begin() + row * kOutputs;
      CHECK(same_bits(alone, Floats(same, same + kOutputs)));
    }
  }
}

TEST_CASE("an embedding of packed integers gives their values, rounded once", "[gpu]") {
  const auto device = device_with(DType::kBF16);
  const auto check = [&](const MatrixStorage& storage) {
    INFO(text_of(storage));
    Random random(5);
    constexpr int64_t kVocab = 40;
    const GroupedWeight stored(random, kVocab, kCols, storage, false);
    const GroupedWeight of_positions(random, kVocab, kCols, storage, false);
    const auto table = device->make_matrix(std::span(&stored.weight, 1), storage);
    const auto positions = device->make_matrix(std::span(&of_positions.weight, 1), storage);
    const std::vector<int32_t> ids = {39, 0, 17};
    DeviceTensor out(*device, 3, kCols, DType::kBF16);
    DeviceTensor with_positions(*device, 3, kCols, DType::kBF16);
    run_step(*device, one_sequence(ids), [&] {
      device->embed({.table = table.get(), .multiplier = 2.0F, .out = out.view()});
      device->embed(
          {.table = table.get(), .position_table = positions.get(), .out = with_positions.view()});
    });
    const Floats got = out.read();
    const Floats sums = with_positions.read();
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t col = 0; col < kCols; ++col) {
        const auto at = static_cast<size_t>(row * kCols + col);
        const double value = weight_at(stored, storage, ids[static_cast<size_t>(row)], col);
        const double added = weight_at(of_positions, storage, row, col);
        CHECK(std::abs(double{got[at]} - 2.0 * value) <= std::abs(value) * 0x1p-7 + 1e-7);
        CHECK(std::abs(double{sums[at]} - value - added) <=
              (std::abs(value) + std::abs(added)) * 0x1p-7 + 1e-7);
      }
    }
  };
  check(storage_as(Quantization::kInt4, 64, true));
  check(storage_as(Quantization::kInt8, 16));
  check(storage_as(Quantization::kMxfp4, kMxfp4GroupSize));
  check(storage_as(Quantization::kF8E4M3, 64));
}

TEST_CASE("packed integers take their bits and their scales', and no more") {
  const auto device = device_with(DType::kBF16);
  const auto bits = [&](const MatrixStorage& storage) {
    const int64_t bytes = device->matrix_bytes("grouped", storage, 4096, 4096);
    return static_cast<double>(bytes) * 8 / (4096.0 * 4096.0);
  };
  CHECK(bits(storage_as(Quantization::kInt4, 128)) == Approx(4.25).margin(0.01));
  CHECK(bits(storage_as(Quantization::kInt4, 128, true)) == Approx(4.5).margin(0.01));
  CHECK(bits(storage_as(Quantization::kInt8, 128)) == Approx(8.25).margin(0.01));
  CHECK(bits(storage_as(Quantization::kMxfp4, 32)) == Approx(4.25).margin(0.01));
  CHECK(bits(with_minima(storage_as(Quantization::kInt4, 32), ScaleForm::kFactors)) ==
        Approx(4.625).margin(0.01));
}

TEST_CASE("pieces of packed integers must be what was planned") {
  const auto device = device_with(DType::kBF16);
  Random random(3);
  const MatrixStorage storage = storage_as(Quantization::kInt4, 64);
  const GroupedWeight first(random, 5, 100, storage, false);
  const GroupedWeight second(random, 20, 100, storage, false);
  const std::vector<HostWeight> pieces = {first.weight, second.weight};
  CHECK(device->make_matrix(pieces, storage)->rows == 25);
  CHECK_THROWS_WITH(device->make_matrix(pieces, storage_as(Quantization::kInt4, 32)),
                    Catch::Contains("expected groups of 32 of 100 columns"));
  HostWeight with_zeros = first.weight;
  with_zeros.grouped.zeros = first.zeros.data();
  CHECK_THROWS_WITH(device->make_matrix(std::span(&with_zeros, 1), storage),
                    Catch::Contains("zero points"));
}

}  // namespace tgi::cuda
