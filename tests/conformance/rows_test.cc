// The ops that work on rows by themselves: embed, norm, activation, add, gather_output_rows, pool,
// report_rows.
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi::rows_test {
namespace {

using Run = std::function<std::vector<Floats>(Device&)>;

// Runs on the reference and on every device; checks closeness, and bits within a group.
// `needs`: devices that can't hold such a matrix are left out.
void conform(const std::string& what,
             double absolute,
             double relative,
             const Run& run,
             const std::optional<DType>& needs = std::nullopt,
             bool is_for_encoders = false) {
  const auto reference = make_reference_device();
  allocate_small_state(*reference);
  const std::vector<Floats> wanted = run(*reference);
  std::map<std::string, std::vector<Floats>> by_group;
  for (const DeviceCase& device_case : device_cases()) {
    if (needs && !device_case.can_hold(*needs)) continue;
    if (is_for_encoders && !device_case.takes_encoders) continue;
    const auto device = device_case.make();
    allocate_small_state(*device);
    const std::vector<Floats> got = run(*device);
    const double extra = 4.0 * roundoff(device->info().activation_dtype);
    const auto& same = by_group.try_emplace(device_case.bit_group, got).first->second;
    for (size_t i = 0; i < wanted.size(); ++i) {
      INFO(device_case.name << ": " << what << ", output " << i);
      CHECK(worst_error(got[i], wanted[i], absolute, relative + extra) <= 1.0);
      if (!device_case.bit_group.empty()) CHECK(same_bits(got[i], same[i]));
    }
  }
}

constexpr int64_t kWidths[] = {1, 15, 16, 17, 96, 130, 1037};

}  // namespace

TEST_CASE("embed looks up tokens and positions in every type") {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool with_positions : {false, true}) {
      conform(
          "embed", 1e-7, 0.0,
          [&](Device& device) {
            Random random(3);
            const int64_t cols = 45;
            const auto table = make_matrix(device, random.values(50 * cols), 50, cols, dtype);
            const auto positions = make_matrix(device, random.values(10 * cols), 10, cols, dtype);
            DeviceTensor out(device, 5, cols, device.info().activation_dtype, cols + 2);
            run_step(device, one_sequence({49, 0, 17, 17, 31}), [&] {
              device.embed({.table = table.get(),
                            .position_table = with_positions ? positions.get() : nullptr,
                            .multiplier = 1.5F,
                            .out = out.view()});
            });
            return std::vector<Floats>{out.read()};
          },
          dtype);
    }
  }
}

TEST_CASE("embed adds positions to what is there") {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    conform(
        "embed of positions alone", 1e-7, 0.0,
        [&](Device& device) {
          Random random(4);
          const int64_t cols = 40;
          const auto positions = make_matrix(device, random.values(10 * cols), 10, cols, dtype);
          DeviceTensor out(device, 5, cols, random.values(5 * cols));
          run_step(device, one_sequence({49, 0, 17, 17, 31}),
                   [&] { device.embed({.position_table = positions.get(), .out = out.view()}); });
          return std::vector<Floats>{out.read()};
        },
        dtype);
  }
}

TEST_CASE("norms agree with the reference, with and without residual and bias") {
  for (const int64_t cols : kWidths) {
    for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
      for (const bool extras : {false, true}) {
        // A layer norm of one column is 0 / 0 but for eps: no meaning to agree on.
        if (kind == NormKind::kLayer && cols == 1) continue;
        conform("norm of " + std::to_string(cols), 2e-6, 2e-6, [&](Device& device) {
          Random random(static_cast<uint32_t>(cols));
          const int64_t rows = 7;
          DeviceTensor x(device, rows, cols, random.values(rows * cols));
          DeviceTensor residual(device, rows, cols, random.values(rows * cols));
          DeviceTensor out(device, rows, cols, device.info().activation_dtype, cols + 1);
          const DeviceTensor weight = DeviceTensor::vector(device, random.values(cols));
          const DeviceTensor bias = DeviceTensor::vector(device, random.values(cols));
          run_step(device, one_sequence({0}), [&] {
            device.norm({.kind = kind,
                         .eps = 1e-5F,
                         .weight = &weight.view(),
                         .bias = extras ? &bias.view() : nullptr,
                         .x = x.view(),
                         .residual = extras ? residual.view() : Tensor{},
                         // One that keeps sums exact in every type.
                         .x_multiplier = kind == NormKind::kLayer ? -1.0F : 1.0F,
                         .out = out.view()});
          });
          return std::vector<Floats>{out.read(), residual.read()};
        });
      }
    }
  }
}

TEST_CASE("norm may write over its input") {
  conform("norm in place", 2e-6, 2e-6, [&](Device& device) {
    Random random(5);
    DeviceTensor x(device, 3, 33, random.values(3 * 33));
    const DeviceTensor weight = DeviceTensor::vector(device, random.values(33));
    run_step(device, one_sequence({0}), [&] {
      device.norm({.eps = 1e-6F,
                   .weight = &weight.view(),
                   .x = x.view(),
                   .residual = Tensor{},
                   .out = x.view()});
    });
    return std::vector<Floats>{x.read()};
  });
}

TEST_CASE("norm may write over the residual") {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    conform("norm over the residual", 2e-6, 2e-6, [&](Device& device) {
      Random random(6);
      DeviceTensor x(device, 5, 771, random.values(5 * 771));
      DeviceTensor residual(device, 5, 771, random.values(5 * 771));
      const DeviceTensor weight = DeviceTensor::vector(device, random.values(771));
      run_step(device, one_sequence({0}), [&] {
        device.norm({.kind = kind,
                     .eps = 1e-6F,
                     .weight = &weight.view(),
                     .x = x.view(),
                     .residual = residual.view(),
                     .out = residual.view()});
      });
      return std::vector<Floats>{residual.read()};
    });
  }
}

TEST_CASE("activations agree with the reference over a wide range") {
  for (const Activation kind : {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh,
                                Activation::kRelu, Activation::kReluSquared}) {
    for (const bool gated : {false, true}) {
      // gelu of a far negative number is x times a difference of two numbers near 1
      conform("activation", 3e-6, 2e-6, [&](Device& device) {
        Random random(static_cast<uint32_t>(kind) + 9);
        const int64_t rows = 40;
        const int64_t cols = 53;
        Floats values = random.values(rows * cols * (gated ? 2 : 1));
        for (float& x : values) x *= 16.0F;
        DeviceTensor in(device, rows, cols * (gated ? 2 : 1), values);
        DeviceTensor out(device, rows, cols, device.info().activation_dtype, cols + 4);
        run_step(device, one_sequence({0}), [&] {
          device.activation({.kind = kind, .gated = gated, .in = in.view(), .out = out.view()});
        });
        return std::vector<Floats>{out.read()};
      });
    }
  }
}

TEST_CASE("a gate with limits agrees with the reference, and what is not a number stays") {
  for (const GateLimits& limits :
       {GateLimits{.limit = 7.0F, .up_limit = 7.0F, .slope = 1.702F, .up_offset = 1.0F},
        GateLimits{.limit = 2.5F, .up_limit = 1.5F}}) {
    conform("limited silu", 3e-6, 3e-6, [&](Device& device) {
      Random random(17);
      const int64_t rows = 30;
      const int64_t cols = 53;
      Floats values = random.values(rows * cols * 2);
      for (float& x : values) x *= 16.0F;
      values[3] = std::nanf("");
      values[cols + 5] = std::nanf("");
      values[7] = -std::numeric_limits<float>::infinity();
      values[8] = std::numeric_limits<float>::infinity();
      values[cols + 9] = -std::numeric_limits<float>::infinity();
      DeviceTensor in(device, rows, cols * 2, values);
      DeviceTensor out(device, rows, cols, device.info().activation_dtype, cols + 4);
      run_step(device, one_sequence({0}),
               [&] { device.activation({.limits = limits, .in = in.view(), .out = out.view()}); });
      Floats got = out.read();
      // gate * sigmoid(gate) of minus infinity is 0 * infinity, as everywhere else.
      for (const size_t i : {3, 5, 7}) {
        CHECK(std::isnan(got[i]));
        got[i] = 0.0F;
      }
      return std::vector<Floats>{got};
    });
  }
}

TEST_CASE("xielu agrees with the reference, also near 0, and what is not a number stays") {
  for (const XieluNumbers& numbers :
       {XieluNumbers{.alpha_p = 0.8F, .alpha_n = 1.3F, .beta = 0.5F, .eps = -1e-6F},
        XieluNumbers{.alpha_p = 0.1F, .alpha_n = 2.5F, .beta = 0.3F, .eps = -0.25F}}) {
    for (const float range : {0x1p-10F, 1.0F, 16.0F}) {
      conform("xielu", 3e-7, 2e-6, [&](Device& device) {
        Random random(18);
        const int64_t rows = 30;
        const int64_t cols = 53;
        Floats values = random.values(rows * cols);
        for (float& x : values) x *= range;
        values[2] = 0.0F;
        values[3] = std::nanf("");
        values[4] = std::numeric_limits<float>::infinity();
        values[5] = -std::numeric_limits<float>::infinity();
        DeviceTensor in(device, rows, cols, values);
        DeviceTensor out(device, rows, cols, device.info().activation_dtype, cols + 4);
        run_step(device, one_sequence({0}), [&] {
          for (const Tensor& to : {out.view(), in.view()}) {
            device.activation({.kind = Activation::kXielu,
                               .gated = false,
                               .xielu = numbers,
                               .in = in.view(),
                               .out = to});
          }
        });
        Floats got = out.read();
        CHECK(same_bits(in.read(), got));
        // Of minus infinity it is the difference of two that are infinite.
        for (const size_t i : {3, 5}) {
          CHECK(std::isnan(got[i]));
          got[i] = 0.0F;
        }
        CHECK(got[4] == std::numeric_limits<float>::infinity());
        got[4] = 0.0F;
        return std::vector<Floats>{got};
      });
    }
  }
}

TEST_CASE("add adds, also onto its own input") {
  for (const int64_t cols : kWidths) {
    conform("add", 1e-7, 0.0, [&](Device& device) {
      Random random(static_cast<uint32_t>(cols) + 1);
      DeviceTensor x(device, 9, cols, random.values(9 * cols));
      DeviceTensor y(device, 9, cols, random.values(9 * cols));
      DeviceTensor out(device, 9, cols, device.info().activation_dtype);
      run_step(device, one_sequence({0}), [&] {
        device.add({.x = x.view(), .y = y.view(), .out = out.view()});
        device.add({.x = x.view(), .y = out.view(), .y_multiplier = 0.25F, .out = x.view()});
      });
      return std::vector<Floats>{out.read(), x.read()};
    });
  }
}

TEST_CASE("add opens what it adds as far as the sigmoid of the row's gate says") {
  for (const int64_t cols : kWidths) {
    conform("add with a gate", 3e-6, 2e-6, [&](Device& device) {
      Random random(static_cast<uint32_t>(cols) + 2);
      DeviceTensor x(device, 9, cols, random.values(9 * cols));
      DeviceTensor y(device, 9, cols, random.values(9 * cols));
      Floats opening = random.values(9);
      for (float& each : opening) each *= 32.0F;
      DeviceTensor gate(device, 9, 1, device.info().activation_dtype, 5);
      gate.write(opening);
      DeviceTensor out(device, 9, cols, device.info().activation_dtype);
      run_step(device, one_sequence({0}), [&] {
        device.add({.x = x.view(),
                    .y = y.view(),
                    .y_multiplier = 0.5F,
                    .y_gate = &gate.view(),
                    .out = out.view()});
      });
      return std::vector<Floats>{out.read()};
    });
  }
}

TEST_CASE("gather_output_rows takes sample rows, then score rows") {
  conform("gather", 0.0, 0.0, [&](Device& device) {
    Random random(21);
    DeviceTensor x(device, 6, 19, random.values(6 * 19));
    DeviceTensor out(device, 4, 19, device.info().activation_dtype);
    Batch batch = one_sequence({1, 2, 3, 4, 5, 6});
    batch.sample_rows = {{.row = 5, .slot = 0, .position = 6}};
    batch.score_rows = {
        {.row = 0, .target_id = 1}, {.row = 3, .target_id = 1}, {.row = 1, .target_id = 1}};
    run_step(device, batch, [&] { device.gather_output_rows(x.view(), out.view()); });
    return std::vector<Floats>{out.read()};
  });
}

TEST_CASE("embed adds the row of a token's type") {
  for (const bool has_types : {false, true}) {
    conform(
        "embed with types", 1e-7, 0.0,
        [&](Device& device) {
          Random random(4);
          const int64_t cols = 45;
          const auto make = [&](int64_t rows) {
            return make_matrix(device, random.values(rows * cols), rows, cols, DType::kF32);
          };
          const auto table = make(50);
          const auto positions = make(10);
          const auto types = make(3);
          DeviceTensor out(device, 5, cols, device.info().activation_dtype, cols + 2);
          Batch batch = one_sequence({49, 0, 17, 17, 31});
          if (has_types) batch.token_types = {0, 0, 2, 1, 1};
          run_step(device, batch, [&] {
            device.embed({.table = table.get(),
                          .position_table = positions.get(),
                          .type_table = types.get(),
                          .out = out.view()});
          });
          return std::vector<Floats>{out.read()};
        },
        std::nullopt, true);
  }
}

TEST_CASE("pool sums, weighs, takes the highest or gives each row, beside rows of logits") {
  constexpr int64_t kCols = 37;
  conform(
      "pool", 2e-5, 1e-6,
      [&](Device& device) {
        Random random(22);
        DeviceTensor x(device, 9, kCols, random.values(9 * kCols));
        DeviceTensor rows(device, 8, kCols, device.info().activation_dtype);
        Batch batch = one_sequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
        batch.score_rows = {{.row = 8, .target_id = 1}};
        batch.kept_rows = {2, 3, 4, 5, 1, 7, 8};
        batch.pooled_rows = {
            {.row = 0, .num_rows = 4, .position = 2, .pooling = Pooling::kSum},
            {.row = 3, .num_rows = 2, .position = 1, .pooling = Pooling::kRows},
            {.row = 4, .num_rows = 3, .position = 40, .pooling = Pooling::kWeightedSum},
            {.row = 1, .num_rows = 5, .position = 4, .pooling = Pooling::kMax},
            {.row = 6, .num_rows = 1, .position = 8, .pooling = Pooling::kSum},
        };
        REQUIRE(batch.num_output_rows() == 8);
        // The first row is the score's.
        Tensor pooled = rows.view();
        pooled.rows = 7;
        pooled.data = static_cast<std::byte*>(pooled.data) +
                      static_cast<size_t>(kCols) * dtype_size(pooled.dtype);
        return run_step(
                   device, batch, [&] { device.gather_output_rows(x.view(), rows.view()); },
                   [&] { device.pool({.hidden = pooled}); })
            .pooled;
      },
      std::nullopt, true);
}

TEST_CASE("report_rows puts columns beside each other, in steps that want it") {
  constexpr int64_t kCols = 37;
  conform("report_rows", 1e-7, 0.0, [&](Device& device) {
    Random random(23);
    DeviceTensor left(device, 9, kCols, random.values(9 * kCols));
    DeviceTensor right(device, 9, kSmallReportedCols - kCols,
                       random.values(9 * (kSmallReportedCols - kCols)));
    std::vector<Floats> out;
    for (const bool is_wanted : {true, false}) {
      Batch batch = one_sequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
      batch.reports_rows = is_wanted;
      out.push_back(run_step(device, batch, [&] {
                      device.report_rows({.x = right.view(), .first_col = kCols});
                      device.report_rows({.x = left.view()});
                    }).reported);
      CHECK(out.back().size() == (is_wanted ? size_t{9} * kSmallReportedCols : 0));
      if (is_wanted) CHECK(out.back()[kSmallReportedCols + 1] == left.read()[kCols + 1]);
    }
    return out;
  });
}

TEST_CASE("report_rows gives rows of any width, from wherever they are, as they are") {
  // The second part begins where no vector does, or where one does.
  for (const int64_t left_cols : {1, 8, 24, 37, 52}) {
    conform("report_rows of " + std::to_string(left_cols), 0.0, 0.0, [&](Device& device) {
      Random random(24);
      const int64_t cols = kSmallReportedCols;
      DeviceTensor x(device, 70, cols, device.info().activation_dtype, cols + 4);
      x.write(random.values(70 * cols));
      Batch batch = one_sequence(std::vector<int32_t>(64, 3));
      batch.reports_rows = true;
      const auto columns = [&](int64_t first, int64_t count) {
        return x.view().first_rows(64).columns(first, count);
      };
      const Floats reported =
          run_step(device, batch, [&] {
            device.report_rows({.x = columns(0, left_cols)});
            device.report_rows({.x = columns(left_cols, cols - left_cols), .first_col = left_cols});
          }).reported;
      const Floats all = x.read();
      CHECK(same_bits(reported, Floats(all.begin(), all.begin() + 64 * cols)));
      return std::vector<Floats>{reported};
    });
  }
}

TEST_CASE("pool gives back what tokens are drawn from, beside rows that are scored") {
  constexpr int64_t kCols = kSmallPooledCols;
  conform("pool of sample rows", 2e-5, 1e-6, [&](Device& device) {
    Random random(25);
    DeviceTensor x(device, 9, kCols, random.values(9 * kCols));
    DeviceTensor rows(device, 5, kCols, device.info().activation_dtype);
    Batch batch = one_sequence({1, 2, 3, 4, 5, 6, 7, 8, 9});
    for (const int32_t row : {1, 4, 7, 8}) {
      batch.sample_rows.push_back({.row = row, .slot = 0, .position = row + 1});
    }
    batch.score_rows = {{.row = 8, .target_id = 1}};
    batch.pooled_rows = {
        {.row = 2, .num_rows = 1, .position = 7, .pooling = Pooling::kRows},
        {.row = 0, .num_rows = 4, .position = 1, .pooling = Pooling::kRows},
        {.row = 0, .num_rows = 3, .position = 1, .pooling = Pooling::kSum},
        {.row = 1, .num_rows = 3, .position = 4, .pooling = Pooling::kWeightedSum},
        {.row = 0, .num_rows = 4, .position = 1, .pooling = Pooling::kMax},
    };
    return run_step(
               device, batch, [&] { device.gather_output_rows(x.view(), rows.view()); },
               [&] { device.pool({.hidden = rows.view()}); })
        .pooled;
  });
}

}  // namespace tgi::rows_test
