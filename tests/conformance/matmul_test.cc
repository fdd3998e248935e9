// matmul against the reference in every weight type and odd shapes, and its promise that a row's
// bits depend on nothing but the row.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

struct Shape {
  int64_t rows;     // of x
  int64_t outputs;  // of w
  int64_t k;
  bool bias;
};

std::vector<Shape> shapes() {
  std::vector<Shape> out = {
      {1, 1, 1, false},      {1, 16, 2, true},      {2, 17, 3, true},
      {6, 64, 64, false},    {7, 65, 65, true},     {12, 130, 31, false},
      {31, 33, 257, true},   {64, 80, 100, false},  {9, 50, 1030, true},  // past one block of k
      {1, 200, 2049, false}, {20, 150, 1096, true}, {64, 144, 1096, false},
  };
  Random random(7);
  for (int i = 0; i < (kUnderSanitizers ? 3 : 12); ++i) {
    out.push_back({random.integer(1, 40), random.integer(1, 150), random.integer(1, 300),
                   random.integer(0, 1) == 1});
  }
  return out;
}

struct Problem {
  Shape shape;
  Floats x, w, bias;

  explicit Problem(const Shape& s) : shape(s) {
    Random random(static_cast<uint32_t>(s.rows * 1000003 + s.outputs * 1009 + s.k));
    x = random.values(s.rows * s.k);
    w = random.values(s.outputs * s.k);
    bias = random.values(s.outputs);
  }
};

Floats run(
    Device& device, const Problem& problem, const Matrix& w, int64_t first_row, int64_t num_rows) {
  const Shape& shape = problem.shape;
  // Rows further apart than they are long, as parts of a fused row are.
  DeviceTensor x(device, num_rows, shape.k, device.info().activation_dtype,
                 shape.k + (shape.k % 8 == 0 ? 8 : 3));
  const auto begin = problem.x.begin() + first_row * shape.k;
  x.write(Floats(begin, begin + num_rows * shape.k));
  DeviceTensor out(device, num_rows, shape.outputs, device.info().activation_dtype,
                   shape.outputs + 5);
  const DeviceTensor bias = DeviceTensor::vector(device, problem.bias);
  run_step(device, one_sequence({0}), [&] {
    device.matmul(
        {.x = x.view(), .w = &w, .bias = shape.bias ? &bias.view() : nullptr, .out = out.view()});
  });
  return out.read();
}

Floats run(Device& device, const Problem& problem, const MatrixStorage& storage) {
  const auto w = make_matrix(device, problem.w, problem.shape.outputs, problem.shape.k, storage);
  return run(device, problem, *w, 0, problem.shape.rows);
}

// Values are below 1, so a sum of k products wanders by about sqrt(k) / 3 and each of k roundings
// adds at most half a unit of it: 8 times the expected error.
double tolerance(const Shape& shape, DType activation) {
  const auto k = static_cast<double>(shape.k);
  return (k + 8.0) * 0x1p-23 + 2.0 * roundoff(activation) * std::sqrt(k);
}

constexpr DType kPlainDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

constexpr MatrixStorage kStorages[] = {DType::kF32,
                                       DType::kF16,
                                       DType::kBF16,
                                       {Quantization::kInt8, 32},
                                       {Quantization::kInt8, 64},
                                       {Quantization::kInt8, 256},
                                       {Quantization::kInt4, 32},
                                       {Quantization::kInt4, 96},
                                       {Quantization::kInt4, 128}};

std::string storage_name(const MatrixStorage& storage) {
  if (storage.quantization == Quantization::kNone) return std::string(dtype_name(storage.dtype));
  return fmt::format("{} in groups of {}", quantization_name(storage.quantization),
                     storage.group_size);
}

}  // namespace

TEST_CASE("matmul agrees with the reference in every weight type and shape") {
  const auto reference = make_reference_device();
  allocate_small_state(*reference);
  std::vector<Problem> problems;
  for (const Shape& shape : shapes()) problems.emplace_back(shape);
  std::map<std::pair<size_t, std::string>, Floats> wanted;
  for (size_t i = 0; i < problems.size(); ++i) {
    for (const MatrixStorage& storage : kStorages) {
      wanted[{i, storage_name(storage)}] = run(*reference, problems[i], storage);
    }
  }
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    allocate_small_state(*device);
    for (size_t i = 0; i < problems.size(); ++i) {
      const Shape& shape = problems[i].shape;
      for (const MatrixStorage& storage : kStorages) {
        if (!device_case.can_hold(storage)) continue;
        INFO(fmt::format("{}: ({}, {}) x ({}, {}) {} bias {}", device_case.name, shape.rows,
                         shape.k, shape.outputs, shape.k, storage_name(storage), shape.bias));
        const Floats got = run(*device, problems[i], storage);
        CHECK(worst_error(got, wanted[{i, storage_name(storage)}],
                          tolerance(shape, device->info().activation_dtype), 0.0) <= 1.0);
      }
    }
  }
}

TEST_CASE("a row of matmul has the same bits alone, in any batch and on every device of its group",
          TGI_NOT_UNDER_SANITIZERS) {
  std::map<std::string, std::vector<Floats>> by_group;
  for (const DeviceCase& device_case : device_cases()) {
    if (device_case.bit_group.empty()) continue;
    const auto device = device_case.make();
    allocate_small_state(*device);
    size_t index = 0;
    for (const Shape& shape : shapes()) {
      const Problem problem(shape);
      for (const MatrixStorage& storage : kStorages) {
        if (!device_case.can_hold(storage)) continue;
        INFO(device_case.name << " rows " << shape.rows << " outputs " << shape.outputs << " k "
                              << shape.k << " " << storage_name(storage));
        const auto w = make_matrix(*device, problem.w, shape.outputs, shape.k, storage);
        const Floats whole = run(*device, problem, *w, 0, shape.rows);
        Floats alone;
        for (int64_t row = 0; row < shape.rows; ++row) {
          const Floats one = run(*device, problem, *w, row, 1);
          alone.insert(alone.end(), one.begin(), one.end());
        }
        CHECK(same_bits(whole, alone));
        auto& seen = by_group[device_case.bit_group];
        if (index == seen.size()) seen.push_back(whole);
        CHECK(same_bits(whole, seen[index++]));
      }
    }
  }
}

TEST_CASE("matmul passes on what is not finite, in x and in the weights, in its row and column") {
  Problem problem({.rows = 4, .outputs = 40, .k = 130, .bias = false});
  const Problem clean = problem;
  const auto k = static_cast<size_t>(problem.shape.k);
  problem.x[1 * k + 77] = std::nanf("");
  problem.x[2 * k + 129] = std::numeric_limits<float>::infinity();
  problem.w[9 * k + 3] = std::nanf("");
  problem.w[30 * k + 128] = -std::numeric_limits<float>::infinity();
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    allocate_small_state(*device);
    for (const MatrixStorage& storage : kStorages) {
      if (!device_case.can_hold(storage)) continue;
      INFO(device_case.name << " " << storage_name(storage));
      const Floats got = run(*device, problem, storage);
      const Floats wanted = run(*device, clean, storage);
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t row = i / 40;
        const size_t col = i % 40;
        const bool is_hit = row == 1 || row == 2 || col == 9 || col == 30;
        INFO("row " << row << " column " << col);
        if (is_hit) {
          CHECK_FALSE(std::isfinite(got[i]));
        } else {
          CHECK(got[i] == wanted[i]);
        }
      }
    }
  }
}

TEST_CASE("make_matrix takes any stored type, transposed or not, and stacks pieces") {
  const auto reference = make_reference_device();
  allocate_small_state(*reference);
  Random random(11);
  const int64_t k = 37;
  const int64_t sizes[] = {5, 20, 9};
  std::vector<StoredMatrix> stored;
  stored.reserve(27);
  for (const DType dtype : kPlainDTypes) {
    for (const bool transposed : {false, true}) {
      for (const int64_t rows : sizes) {
        stored.emplace_back(random.values(rows * k), rows, k, dtype, transposed);
      }
    }
  }
  std::vector<HostWeight> pieces;
  for (const StoredMatrix& matrix : stored) pieces.push_back(matrix.weight);
  const int64_t outputs = 6 * (5 + 20 + 9);
  Problem problem({.rows = 3, .outputs = outputs, .k = k, .bias = false});
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    allocate_small_state(*device);
    for (const DType dtype : kPlainDTypes) {
      if (!device_case.can_hold(dtype)) continue;
      INFO(device_case.name << " " << dtype_name(dtype));
      const auto w = device->make_matrix(pieces, dtype);
      const auto reference_w = reference->make_matrix(pieces, dtype);
      CHECK(w->rows == outputs);
      CHECK(w->cols == k);
      CHECK(w->size_bytes == device->matrix_bytes("dense", dtype, outputs, k));
      const Floats got = run(*device, problem, *w, 0, 3);
      const Floats wanted = run(*reference, problem, *reference_w, 0, 3);
      CHECK(worst_error(got, wanted, tolerance(problem.shape, device->info().activation_dtype),
                        0.0) <= 1.0);
    }
  }
}

// Rounding to int8 by groups leaves such an x as it is: multiples of 1/128, of which one of every
// 16 columns is the largest that there can be.
Floats exact_in_int8(const Shape& shape) {
  Random random(static_cast<uint32_t>(shape.k));
  Floats out;
  for (int64_t i = 0; i < shape.rows * shape.k; ++i) {
    const bool is_first = i % shape.k % 16 == 0;
    out.push_back(is_first ? 127.0F / 128.0F
                           : static_cast<float>(random.integer(-127, 127)) / 128.0F);
  }
  return out;
}

MatrixStorage stored_integers(Quantization kind, int32_t group_size, bool zero_points) {
  MatrixStorage out(kind, group_size);
  out.stored = true;
  out.zero_points = zero_points;
  return out;
}

std::vector<MatrixStorage> stored_storages() {
  std::vector<MatrixStorage> out = {stored_integers(Quantization::kMxfp4, kMxfp4GroupSize, false)};
  for (const Quantization kind : {Quantization::kInt4, Quantization::kInt8}) {
    for (const int32_t group_size : {32, 64, 96, 128}) {
      for (const bool zero_points : {false, true}) {
        out.push_back(stored_integers(kind, group_size, zero_points));
      }
    }
    for (const int32_t group_size : {16, 32, 64}) {
      for (const ScaleForm scales : {ScaleForm::kF32, ScaleForm::kF16, ScaleForm::kFactors}) {
        for (const bool minima : {false, true}) {
          out.push_back(stored_integers(kind, group_size, false));
          out.back().minima = minima;
          out.back().scales = scales;
        }
      }
    }
  }
  // What only comes out of GGUF files. Upper bits of 5 share a line of 32 columns.
  for (const Quantization kind : {Quantization::kInt6, Quantization::kInt5, Quantization::kIq4}) {
    for (const int32_t group_size : {16, 32, 64}) {
      if (kind == Quantization::kInt5 && group_size == 16) continue;
      for (const ScaleForm scales : {ScaleForm::kF32, ScaleForm::kF16, ScaleForm::kFactors}) {
        for (const bool minima : {false, true}) {
          if (kind == Quantization::kIq4 && minima) continue;
          out.push_back(stored_integers(kind, group_size, false));
          out.back().minima = minima;
          out.back().scales = scales;
        }
      }
    }
  }
  return out;
}

TEST_CASE("integers of a checkpoint are multiplied with as they are, on every device") {
  const auto reference = make_reference_device();
  allocate_small_state(*reference);
  // By the place in the list of all shapes and storages; and what the reference gives.
  std::map<std::string, std::map<size_t, Floats>> by_group;
  std::map<size_t, Floats> wanted;
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    allocate_small_state(*device);
    REQUIRE(device->info().keeps.stored_integers);
    size_t index = 0;
    for (const Shape& shape : shapes()) {
      Problem problem(shape);
      problem.x = exact_in_int8(shape);
      for (const MatrixStorage& storage : stored_storages()) {
        const size_t place = index++;
        // Of each storage some shapes, others for the next.
        if (device_case.is_slow && (shape.rows > 9 || place % 5 != 0)) continue;
        INFO(fmt::format("{}: ({}, {}) x ({}, {}) stored {} zero points {} minima {} scales {}",
                         device_case.name, shape.rows, shape.k, shape.outputs, shape.k,
                         storage_name(storage), storage.zero_points, storage.minima,
                         static_cast<int>(storage.scales)));
        Random random(static_cast<uint32_t>(shape.k + storage.group_size));
        GroupedWeight stored(random, shape.outputs, shape.k, storage, false);
        const std::span<const HostWeight> pieces(&stored.weight, 1);
        const auto w = device->make_matrix(pieces, storage);
        CHECK(w->size_bytes == device->matrix_bytes("grouped", storage, shape.outputs, shape.k));
        const Floats got = run(*device, problem, *w, 0, shape.rows);
        Floats& right = wanted[place];
        if (right.empty()) {
          const auto wanted_w = reference->make_matrix(pieces, storage);
          right = run(*reference, problem, *wanted_w, 0, shape.rows);
        }
        CHECK(worst_error(got, right, tolerance(shape, device->info().activation_dtype), 0.0) <=
              1.0);
        if (device_case.bit_group.empty()) continue;
        auto& seen = by_group[device_case.bit_group];
        CHECK(same_bits(got, seen.try_emplace(place, got).first->second));
        const Floats last = run(*device, problem, *w, shape.rows - 1, 1);
        CHECK(same_bits(last, Floats(got.end() - shape.outputs, got.end())));
      }
    }
  }
}

TEST_CASE("mxfp4 takes 4.25 bits a weight where integers are held, and zeros stay zeros") {
  const MatrixStorage storage = stored_integers(Quantization::kMxfp4, kMxfp4GroupSize, false);
  Random random(7);
  GroupedWeight stored(random, 32, 256, storage, false);
  for (const std::string_view isa : available_isas()) {
    INFO(isa);
    const auto device = make_cpu_device({.isa = std::string(isa), .num_threads = 1});
    CHECK(device->matrix_bytes("grouped", storage, 32, 256) == 32 * 256 * 17 / 32);
    // A scale that is too small for a float is zero, as what it multiplies would be.
    for (float& scale : stored.scales) scale = 0x1p-128F;
    allocate_small_state(*device);
    const auto w = device->make_matrix(std::span<const HostWeight>(&stored.weight, 1), storage);
    Problem problem({.rows = 3, .outputs = 32, .k = 256, .bias = false});
    for (const float x : run(*device, problem, *w, 0, 3)) CHECK(x == 0.0F);
  }
}

TEST_CASE("stacked pieces of integers must be of the groups that were planned") {
  Random random(3);
  const MatrixStorage storage = stored_integers(Quantization::kInt4, 64, false);
  GroupedWeight first(random, 5, 100, storage, false);
  GroupedWeight second(random, 20, 100, storage, false);
  for (const std::string_view isa : {"generic", "auto"}) {
    const auto device = make_cpu_device({.isa = std::string(isa), .num_threads = 1});
    const std::vector<HostWeight> pieces = {first.weight, second.weight};
    CHECK(device->make_matrix(pieces, storage)->rows == 25);
    CHECK_THROWS_WITH(device->make_matrix(pieces, stored_integers(Quantization::kInt4, 32, false)),
                      Catch::Contains("expected groups of 32 of 100 columns"));
    CHECK_THROWS_WITH(device->make_matrix(pieces, DType::kF32), Catch::Contains("grouped"));
    HostWeight with_zeros = first.weight;
    with_zeros.grouped.zeros = first.zeros.data();
    CHECK_THROWS_WITH(device->make_matrix(std::span(&with_zeros, 1), storage),
                      Catch::Contains("zero points"));
  }
}

TEST_CASE("a weight format without a kernel is refused by name") {
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    StoredMatrix stored(Floats(4, 1.0F), 2, 2, DType::kF32);
    stored.weight.format = "ternary";
    CHECK_THROWS_WITH(device->make_matrix(std::span(&stored.weight, 1), DType::kF32),
                      Catch::Contains("ternary"));
    CHECK_THROWS_WITH(device->matrix_bytes("ternary", DType::kF32, 2, 2),
                      Catch::Contains("ternary"));
  }
}

}  // namespace tgi
