// Packing of every type of panel, and multiplying with few and with many rows. See kernel_checks.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/grouped_panels.h"
#include "engine/cpu/kernel_checks.h"
#include "engine/cpu/kernel_choice.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

// The heights of tiles (1 to 6), more than one of them, and more than the matrix unit takes at
// once.
constexpr int64_t kRowCounts[] = {1, 2, 3, 4, 5, 6, 17, 33};
constexpr float kUntouched = 7.0F;  // behind the outputs, where a kernel has no business

struct Shape {
  int64_t num_rows = 0;        // of x at most
  int64_t num_outputs = 0;     // not a multiple of 16: the last panel is not full
  int64_t cols = 0;            // nor of a block or group
  DType source = DType::kF32;  // that weights are stored in
  bool transposed = false;     // weights are stored (cols, num_outputs)
};

struct Problem {
  Shape shape;
  PanelLayout layout;
  std::span<std::byte> panels;
  std::span<std::byte> prepared;
  std::span<const float> x;      // (num_rows, cols)
  std::span<std::byte> weights;  // (num_outputs, cols), for the packing
  std::span<const float> bias;   // (num_outputs)
  std::span<float> out;          // (num_rows, out_stride)
  std::span<float> unpacked;     // as weights
  std::vector<int8_t> codes;     // of a stored matrix, as are scales and zeros
  std::vector<float> scales;
  std::vector<int8_t> zeros;
  std::vector<float> minima;
  std::vector<int8_t> group_factors;  // of scales and of minima

  int64_t num_panels() const { return round_up(shape.num_outputs, 16) / 16; }
  int64_t out_stride() const { return shape.num_outputs + 5; }
  PanelLayout layout_of(const KernelTable& kernels) const {
    PanelLayout out = layout;
    out.pair_order = kernels.pair_order;
    return out;
  }
};

std::string_view scales_name(const MatrixStorage& storage) {
  if (!storage.stored) return "";
  switch (storage.scales) {
    case ScaleForm::kF16:
      return " with scales of f16";
    case ScaleForm::kFactors:
      return " with factors of scales";
    case ScaleForm::kF32:
      break;
  }
  return " with scales of f32";
}

std::string type_name(const MatrixStorage& storage) {
  if (storage.quantization == Quantization::kNone) return std::string(dtype_name(storage.dtype));
  return fmt::format("{} in groups of {}{}{}", quantization_name(storage.quantization),
                     storage.group_size, scales_name(storage),
                     storage.zero_points ? " and zero points"
                     : storage.minima    ? " and minima"
                                         : "");
}

void store_as(std::span<const float> values, DType dtype, std::byte* to) {
  for (const float value : values) {
    const uint16_t half = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    if (dtype == DType::kF32) {
      std::memcpy(to, &value, sizeof value);
    } else {
      std::memcpy(to, &half, sizeof half);
    }
    to += dtype_size(dtype);
  }
}

std::shared_ptr<Problem> make_problem(KernelChecks& checks,
                                      const MatrixStorage& storage,
                                      const Shape& shape) {
  auto out = std::make_shared<Problem>();
  out->shape = shape;
  out->layout = PanelMatrix::layout_for(storage, PairOrder::kAdjacent, shape.cols);
  out->panels = checks.bytes(out->num_panels() * out->layout.bytes());
  out->prepared = checks.bytes((shape.num_rows + kExtraPreparedRows) *
                               prepared_row_bytes(round_up(shape.cols, 256) * 4));
  const std::span<float> x = checks.random_floats(shape.num_rows * shape.cols);
  x[5] = 1e-39F;  // counts as zero
  out->x = x;
  out->bias = checks.random_floats(shape.num_outputs);
  out->out = checks.floats(shape.num_rows * out->out_stride());
  if (!storage.stored) {
    const int64_t count = shape.num_outputs * shape.cols;
    out->weights = checks.bytes(count * static_cast<int64_t>(dtype_size(shape.source)));
    store_as(checks.random_floats(count), shape.source, out->weights.data());
    out->unpacked = checks.floats(count);
  }
  return out;
}

// A checkpoint's own integers, put into panels here: no kernel does that.
void fill_stored(KernelChecks& checks, Problem& problem) {
  const int64_t num_groups = problem.layout.num_groups();
  const int64_t rows = problem.shape.num_outputs;
  const PanelType type = problem.layout.type;
  const bool is_mxfp4 = type == PanelType::kMxfp4;
  const bool is_table = type == PanelType::kTable4;
  const bool is_iq4 = is_table && problem.layout.head.table == CodeTable::kIq4;
  const auto highest = static_cast<float>(integer_offset(type) - 1);
  for (const float x : checks.random_floats(rows * problem.shape.cols)) {
    // With minima those of less than 8 bits are not below 0.
    const bool has_sign = !is_narrow_integer(type) || !problem.layout.head.minima;
    const float code = has_sign ? x * highest : (x < 0 ? -x : x) * (2 * highest + 1);
    const int place = static_cast<int>(x * 7.9F) + 8;
    problem.codes.push_back(is_mxfp4   ? kMxfp4Codes[place]
                            : is_iq4   ? kIq4Codes[place]
                            : is_table ? static_cast<int8_t>(place)
                                       : static_cast<int8_t>(code));
  }
  for (const float x : checks.random_floats(rows * num_groups)) {
    problem.scales.push_back(is_mxfp4 ? std::ldexp(1.0F, static_cast<int>(x * 9.0F) - 9)
                                      : x * 0.01F);
  }
  for (const float x : checks.random_floats(rows * num_groups)) {
    problem.zeros.push_back(static_cast<int8_t>(x * highest));
  }
  for (const float x : checks.random_floats(rows * num_groups)) {
    problem.minima.push_back(x * 0.05F);
    problem.group_factors.push_back(static_cast<int8_t>(x * 127.0F));
  }
  for (int64_t panel = 0; panel < problem.num_panels(); ++panel) {
    std::vector<GroupedRow> sources;
    for (int64_t row = panel * 16; row < std::min(rows, panel * 16 + 16); ++row) {
      sources.push_back(
          {.codes = problem.codes.data() + row * problem.shape.cols,
           .scales = problem.scales.data() + row * num_groups,
           .zeros =
               problem.layout.head.zero_points ? problem.zeros.data() + row * num_groups : nullptr,
           .minima =
               problem.layout.head.minima ? problem.minima.data() + row * num_groups : nullptr,
           // As many numbers as groups: more than there are blocks.
           .factors = {.block_scales = problem.scales.data() + row * num_groups,
                       .group_scales = problem.group_factors.data() + row * num_groups,
                       .block_minima = problem.minima.data() + row * num_groups,
                       .group_minima = problem.group_factors.data() + row * num_groups}});
    }
    pack_grouped_panel(sources, problem.layout,
                       problem.panels.data() + panel * problem.layout.bytes());
  }
}

std::span<const float> pack(const Problem& problem, const KernelTable& kernels) {
  const PanelLayout layout = problem.layout_of(kernels);
  const auto run = kernels.pack[static_cast<size_t>(layout.type)];
  const Shape& shape = problem.shape;
  const int64_t row_step = shape.transposed ? 1 : shape.cols;
  const int64_t col_step = shape.transposed ? shape.num_outputs : 1;
  for (int64_t panel = 0; panel < problem.num_panels(); ++panel) {
    PackPanel job;
    for (int64_t row = 0; row < 16 && panel * 16 + row < shape.num_outputs; ++row) {
      const int64_t from = (panel * 16 + row) * row_step;
      job.rows[static_cast<size_t>(row)] = {
          .data = problem.weights.data() + from * static_cast<int64_t>(dtype_size(shape.source)),
          .dtype = shape.source,
          .col_stride = col_step};
    }
    job.layout = layout;
    job.out = problem.panels.data() + panel * layout.bytes();
    run(job);
  }
  for (int64_t row = 0; row < shape.num_outputs; ++row) {
    const std::byte* const panel = problem.panels.data() + row / 16 * layout.bytes();
    for (int64_t col = 0; col < shape.cols; ++col) {
      problem.unpacked[static_cast<size_t>(row * shape.cols + col)] =
          panel_element(layout, panel, row % 16, col);
    }
  }
  return problem.unpacked;
}

std::span<const float> multiply(const Problem& problem,
                                const KernelTable& kernels,
                                const MatmulKernel& kernel,
                                int64_t num_rows) {
  if (kernel.block == nullptr) return {};
  const PanelLayout layout = problem.layout_of(kernels);
  const Shape& shape = problem.shape;
  const int64_t stride = prepared_row_bytes(kernel.x_bytes(shape.cols, layout.group_size));
  const std::span<float> out =
      problem.out.first(static_cast<size_t>(num_rows * problem.out_stride()));
  std::fill(out.begin(), out.end(), kUntouched);
  const auto room = static_cast<int64_t>(problem.prepared.size());
  if (stride <= 0 || stride * (num_rows + kExtraPreparedRows) > room) return out;  // nonsense
  for (int64_t row = 0; row < num_rows; ++row) {
    kernel.prepare(problem.x.data() + row * shape.cols, shape.cols, layout.group_size,
                   problem.prepared.data() + row * stride);
  }
  kernel.block({.x = problem.prepared.data(),
                .x_stride_bytes = stride,
                .num_rows = num_rows,
                .k = shape.cols,
                .group_size = layout.group_size,
                .head = layout.head,
                .panels = problem.panels.data(),
                .panel_bytes = layout.bytes(),
                .num_panels = problem.num_panels(),
                .bias = problem.bias.data(),
                .out = out.data(),
                .out_stride = problem.out_stride(),
                .num_outputs = shape.num_outputs});
  return out;
}

void add_problem(KernelChecks& checks, const MatrixStorage& storage, const Shape& shape) {
  const std::shared_ptr<Problem> problem = make_problem(checks, storage, shape);
  const std::string name = type_name(storage);
  const auto type = static_cast<size_t>(problem->layout.type);
  if (storage.stored) {
    fill_stored(checks, *problem);
  } else {
    checks.add(fmt::format("pack of {}", name),
               [problem](const KernelTable& kernels) { return pack(*problem, kernels); });
  }
  // A row does not depend on the others, so that what few rows give begins what many give.
  const auto few = [problem, type](int64_t num_rows) {
    return [problem, type, num_rows](const KernelTable& kernels) {
      return multiply(*problem, kernels, kernels.matmul[type], num_rows);
    };
  };
  const std::span<const float> expected =
      checks.add(fmt::format("matmul of {}, {} rows", name, shape.num_rows), few(shape.num_rows));
  for (const int64_t num_rows : kRowCounts) {
    if (num_rows < shape.num_rows) {
      checks.add(fmt::format("matmul of {}, {} rows", name, num_rows), expected, few(num_rows));
    }
    if (num_rows > shape.num_rows || !many_takes(problem->layout)) continue;
    checks.add(fmt::format("matmul_many of {}, {} rows", name, num_rows), expected,
               [problem, type, num_rows](const KernelTable& kernels) {
                 return multiply(*problem, kernels, kernels.matmul_many[type], num_rows);
               });
  }
}

MatrixStorage stored_as(Quantization kind, int32_t group_size, bool minima, ScaleForm scales) {
  MatrixStorage out(kind, group_size);
  out.stored = true;
  out.minima = minima;
  out.scales = scales;
  return out;
}

MatrixStorage stored(Quantization kind, int32_t group_size, bool zero_points) {
  MatrixStorage out(kind, group_size);
  out.stored = true;
  out.zero_points = zero_points;
  return out;
}

}  // namespace

void add_matmul_checks(KernelChecks& checks) {
  add_problem(checks, DType::kF32, {.num_rows = 33, .num_outputs = 40, .cols = 37});
  add_problem(checks, DType::kF16,
              {.num_rows = 17, .num_outputs = 24, .cols = 70, .source = DType::kF16});
  add_problem(checks, DType::kBF16,
              {.num_rows = 33, .num_outputs = 40, .cols = 70, .transposed = true});
  // More columns than are gone through at once.
  add_problem(checks, DType::kBF16,
              {.num_rows = 17, .num_outputs = 16, .cols = 1060, .source = DType::kBF16});
  for (const Quantization kind : {Quantization::kInt8, Quantization::kInt4}) {
    add_problem(checks, {kind, 32}, {.num_rows = 33, .num_outputs = 40, .cols = 74});
    add_problem(checks, {kind, 64}, {.num_rows = 33, .num_outputs = 24, .cols = 74});
    add_problem(checks, {kind, 128}, {.num_rows = 17, .num_outputs = 8, .cols = 138});
    add_problem(checks, {kind, 256}, {.num_rows = 17, .num_outputs = 8, .cols = 266});
    add_problem(checks, stored(kind, 128, false), {.num_rows = 33, .num_outputs = 40, .cols = 138});
    add_problem(checks, stored(kind, 96, true), {.num_rows = 17, .num_outputs = 24, .cols = 106});
    add_problem(checks, stored_as(kind, 16, false, ScaleForm::kF32),
                {.num_rows = 33, .num_outputs = 24, .cols = 74});
    add_problem(checks, stored_as(kind, 32, true, ScaleForm::kF32),
                {.num_rows = 33, .num_outputs = 40, .cols = 106});
    add_problem(checks, stored_as(kind, 32, false, ScaleForm::kF16),
                {.num_rows = 33, .num_outputs = 24, .cols = 74});
    add_problem(checks, stored_as(kind, 32, true, ScaleForm::kF16),
                {.num_rows = 17, .num_outputs = 24, .cols = 74});
    add_problem(checks, stored_as(kind, 16, true, ScaleForm::kFactors),
                {.num_rows = 6, .num_outputs = 24, .cols = 282});
    add_problem(checks, stored_as(kind, 32, true, ScaleForm::kFactors),
                {.num_rows = 33, .num_outputs = 40, .cols = 298});
  }
  for (const Quantization kind : {Quantization::kInt6, Quantization::kInt5, Quantization::kIq4}) {
    add_problem(checks, stored_as(kind, 32, false, ScaleForm::kF16),
                {.num_rows = 33, .num_outputs = 24, .cols = 74});
    add_problem(checks, stored_as(kind, 32, kind != Quantization::kIq4, ScaleForm::kFactors),
                {.num_rows = 17, .num_outputs = 40, .cols = 298});
  }
  for (const Quantization kind : {Quantization::kNf4, Quantization::kFp4}) {
    add_problem(checks, stored(kind, 64, false), {.num_rows = 33, .num_outputs = 24, .cols = 138});
  }
  add_problem(checks, stored_as(Quantization::kInt6, 16, false, ScaleForm::kFactors),
              {.num_rows = 6, .num_outputs = 24, .cols = 282});
  add_problem(checks, stored(Quantization::kMxfp4, kMxfp4GroupSize, false),
              {.num_rows = 33, .num_outputs = 40, .cols = 170});
}

}  // namespace tgi
