// What is for the matrix unit, on an emulated one, against the plain kernels: the same bits.
// Where the processor has the unit, tests/conformance runs them on it.
#include "engine/cpu/kernels/amx_matmul.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/cpu/flush_denormals.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/kernel_checks.h"
#include "engine/cpu/kernels/amx_attention.h"
#include "engine/cpu/kernels/amx_int.h"
#include "engine/cpu/kernels/attention.h"
#include "engine/cpu/kernels/i32x16_generic.h"
#include "engine/cpu/panel_matrix.h"
#include "tests/catch.h"
#include "tests/conformance/harness.h"

namespace tgi {
namespace {

struct Shape {
  int64_t rows, outputs, k, group_size;
};

Floats multiply(const MatmulKernel& kernel,
                const PanelMatrix& w,
                const Floats& x,
                const Floats& bias,
                int64_t rows) {
  const int64_t stride = round_up(kernel.x_bytes(w.cols, w.layout.group_size), 64) + 64;
  const Buffer prepared = map_memory(static_cast<size_t>((rows + 32) * stride), "test");
  auto* const to = static_cast<std::byte*>(prepared.data());
  for (int64_t row = 0; row < rows; ++row) {
    kernel.prepare(x.data() + row * w.cols, w.cols, w.layout.group_size, to + row * stride);
  }
  // Whole lines of many rows are written in another way.
  const int64_t out_stride = rows < 96 ? w.rows + 3 : round_up(w.rows, 16);
  const auto num_floats = static_cast<size_t>(rows * out_stride);
  const Buffer memory = map_memory(num_floats * sizeof(float), "test");
  auto* const out = static_cast<float*>(memory.data());
  std::fill_n(out, num_floats, 7.0F);
  kernel.block({.x = to,
                .x_stride_bytes = stride,
                .num_rows = rows,
                .k = w.cols,
                .group_size = w.layout.group_size,
                .head = w.layout.head,
                .panels = w.panel(0),
                .panel_bytes = w.panel_bytes,
                .num_panels = w.num_panels(),
                .bias = bias.empty() ? nullptr : bias.data(),
                .out = out,
                .out_stride = out_stride,
                .num_outputs = w.rows});
  return {out, out + num_floats};
}

void check(PanelType type, const MatmulKernel& amx) {
  ThreadPool pool(1);
  const FlushDenormals flush;
  Random random(static_cast<uint32_t>(type) + 5);
  for (const Shape& shape : {Shape{1, 1, 1, 32},
                             {16, 16, 32, 32},
                             {17, 33, 64, 64},
                             {32, 32, 100, 64},
                             {33, 50, 1030, 128},
                             {48, 16, 2100, 32},
                             {70, 47, 300, 96},
                             {300, 56, 96, 32},
                             {96, 64, 1500, 64},
                             // Rows that are taken in parts, by more panels than pass at a time.
                             {50, 40, 4200, 128},
                             {2, 530, 4128, 32}}) {
    Floats x = random.values(shape.rows * shape.k);
    if (shape.k > 32) x[5] = 1e-39F;  // counts as zero
    const Floats values = random.values(shape.outputs * shape.k);
    const StoredMatrix stored(values, shape.outputs, shape.k, DType::kF32);
    MatrixStorage storage = DType::kBF16;
    if (type != PanelType::kBF16) {
      storage = {type == PanelType::kInt8 ? Quantization::kInt8 : Quantization::kInt4,
                 static_cast<int32_t>(shape.group_size)};
    }
    const KernelTable& plain = generic_kernels();
    const PanelMatrix w(std::span(&stored.weight, 1), storage, plain, pool);
    for (const Floats& bias : {Floats{}, random.values(shape.outputs)}) {
      INFO(fmt::format("({}, {}) x {} in groups of {}", shape.rows, shape.k, shape.outputs,
                       shape.group_size));
      CHECK(same_bits(multiply(amx, w, x, bias, shape.rows),
                      multiply(plain.matmul[static_cast<size_t>(type)], w, x, bias, shape.rows)));
    }
  }
}

// The integers of a checkpoint, with other scales and with zero points.
void check_stored(PanelType type,
                  const MatmulKernel& amx,
                  Quantization table = Quantization::kIq4) {
  ThreadPool pool(1);
  Random random(29);
  const bool is_mxfp4 = type == PanelType::kMxfp4;
  const bool is_table = type == PanelType::kTable4;
  const Quantization kind = type == PanelType::kInt8   ? Quantization::kInt8
                            : is_mxfp4                 ? Quantization::kMxfp4
                            : is_table                 ? table
                            : type == PanelType::kInt6 ? Quantization::kInt6
                            : type == PanelType::kInt5 ? Quantization::kInt5
                                                       : Quantization::kInt4;
  struct Form {
    bool zero_points, minima;
    ScaleForm scales;
  };
  for (const Form& form : {Form{false, false, ScaleForm::kF32},
                           {true, false, ScaleForm::kF32},
                           {false, true, ScaleForm::kF32},
                           {false, false, ScaleForm::kF16},
                           {false, true, ScaleForm::kF16},
                           {false, false, ScaleForm::kFactors},
                           {false, true, ScaleForm::kFactors}}) {
    if ((is_table || upper_bits(type) > 0) && form.zero_points) continue;
    if (is_table && form.minima) continue;
    if (value_table(kind) != nullptr && form.scales != ScaleForm::kF32) continue;
    if (is_mxfp4 && (form.zero_points || form.minima || form.scales != ScaleForm::kF32)) continue;
    for (const auto& [rows, outputs, k, any_group_size] :
         {std::tuple{1, 16, 64, 32}, {17, 33, 200, 64}, {40, 48, 300, 96}, {33, 20, 1250, 128}}) {
      const bool is_small = is_mxfp4 || form.scales == ScaleForm::kFactors;
      const int group_size = is_small ? 32 : any_group_size;
      MatrixStorage storage(kind, group_size);
      storage.stored = true;
      storage.zero_points = form.zero_points;
      storage.minima = form.minima;
      storage.scales = form.scales;
      GroupedWeight stored(random, outputs, k, storage, false);
      const KernelTable& plain = generic_kernels();
      const PanelMatrix w(std::span(&stored.weight, 1), storage, plain, pool);
      const Floats x = random.values(int64_t{rows} * k);
      INFO(fmt::format("({}, {}) x {} in groups of {}, zero points {}, minima {}, scales {}", rows,
                       k, outputs, group_size, form.zero_points, form.minima,
                       static_cast<int>(form.scales)));
      CHECK(same_bits(multiply(amx, w, x, {}, rows),
                      multiply(plain.matmul[static_cast<size_t>(type)], w, x, {}, rows)));
    }
  }
}

}  // namespace

TEST_CASE("the matrix unit's bf16 matmul has the bits of the plain one") {
  using X = AmxBf16X<F32x16Generic>;
  check(PanelType::kBF16, {.x_bytes = X::x_bytes,
                           .prepare = X::prepare,
                           .block = AmxBf16<F32x16Generic, EmulatedAmxUnit>::run});
}

TEST_CASE("the matrix unit's matmuls of integers have the bits of the plain ones") {
  for_integer_panels([]<PanelType kType>() {
    MatmulKernel kernel = generic_kernels().matmul[static_cast<size_t>(kType)];
    kernel.block = AmxInt<I32x16Generic, EmulatedAmxUnit, kType>::run;
    if (kType == PanelType::kInt8 || kType == PanelType::kInt4) check(kType, kernel);
    check_stored(kType, kernel);
  });
}

TEST_CASE("the matrix unit's attention has the bits of the plain one") {
  KernelTable table = generic_kernels();
  set_attention<AmxProducts<F32x16Generic, EmulatedAmxUnit>>(table, PanelType::kBF16);
  const KernelChecks checks(generic_kernels());
  int num_run = 0;
  for (int i = 0; i < checks.size(); ++i) {
    if (!checks.name(i).starts_with("attention over ")) continue;
    INFO(checks.name(i));
    CHECK(!checks.run(i, table).has_value());
    ++num_run;
  }
  CHECK(num_run > 20);
}

}  // namespace tgi
