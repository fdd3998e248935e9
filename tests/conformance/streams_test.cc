// The ops of hidden states in several streams, and of rows that are compared with their own
// statistics (engine/device/stream_ops.h).
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "engine/cpu/cpu_backend.h"
#include "tests/catch.h"
#include "tests/conformance/device_case.h"
#include "tests/conformance/harness.h"

namespace tgi::streams_test {
namespace {

using Run = std::function<Floats(Device&)>;

void conform(const std::string& what, double absolute, double relative, const Run& run) {
  const auto reference = make_reference_device();
  allocate_small_state(*reference);
  const Floats wanted = run(*reference);
  std::map<std::string, Floats> by_group;
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    allocate_small_state(*device);
    const Floats got = run(*device);
    const double extra = 8.0 * roundoff(device->info().activation_dtype);
    const Floats& same = by_group.try_emplace(device_case.bit_group, got).first->second;
    INFO(device_case.name << ": " << what);
    CHECK(worst_error(got, wanted, absolute + extra, relative + extra) <= 1.0);
    if (!device_case.bit_group.empty()) CHECK(same_bits(got, same));
  }
}

constexpr int64_t kWidths[] = {1, 15, 16, 33, 130, 1037, 1048};
constexpr int64_t kRows = 7;

Floats joined(const Floats& a, const Floats& b) {
  Floats out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

struct Streams {
  DeviceTensor routed;
  DeviceTensor matrix;
  DeviceTensor all;
  StreamRouting routing;

  Streams(Device& device, Random& random, int32_t count, int64_t cols, int64_t num_coefficients)
      : routed(device, kRows, count, device.info().activation_dtype, count + 3),
        matrix(DeviceTensor::vector(device, random.values(num_coefficients * count))),
        all(device, kRows, count * cols, random.values(kRows * count * cols)),
        routing{.count = count, .scale = 1.5F, .routed = routed.view(), .matrix = &matrix.view()} {
    routed.write(random.values(kRows * count));
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
};

}  // namespace

TEST_CASE("streams are predicted from what all of them were") {
  for (const int32_t count : {2, 3, 4, kMaxStreams}) {
    for (const int64_t cols : kWidths) {
      conform("predict_streams", 6e-6, 2e-6, [&](Device& device) {
        Random random(static_cast<uint32_t>(cols) + static_cast<uint32_t>(count));
        Streams streams(device, random, count, cols, int64_t{count} * count);
        run_step(device, one_sequence({0}), [&] {
          device.predict_streams({.routing = streams.routing, .streams = streams.all.view()});
        });
        return streams.all.read();
      });
    }
  }
}

TEST_CASE("streams are corrected by what a layer made of one, which it then reads scaled") {
  for (const int32_t count : {2, 3, kMaxStreams}) {
    for (const int64_t cols : kWidths) {
      for (const bool in_place : {false, true}) {
        conform("correct_streams", 6e-6, 2e-6, [&](Device& device) {
          Random random(static_cast<uint32_t>(cols) + static_cast<uint32_t>(count));
          Streams streams(device, random, count, cols, count);
          DeviceTensor x(device, kRows, cols, random.values(kRows * cols));
          DeviceTensor apart(device, kRows, cols, device.info().activation_dtype, cols + 5);
          const DeviceTensor scales = DeviceTensor::vector(device, random.values(cols));
          const DeviceTensor& out = in_place ? x : apart;
          run_step(device, one_sequence({0}), [&] {
            device.correct_streams({.routing = streams.routing,
                                    .active = in_place ? 0 : count - 1,
                                    .x = x.view(),
                                    .scales = in_place ? nullptr : &scales.view(),
                                    .streams = streams.all.view(),
                                    .out = out.view()});
          });
          return joined(streams.all.read(), out.read());
        });
      }
    }
  }
}

struct Connected {
  DeviceTensor made;
  DeviceTensor base;
  DeviceTensor scales;
  DeviceTensor all;
  StreamConnection connection;

  Connected(Device& device, Random& random, int32_t count, int64_t cols)
      : made(device,
             kRows,
             (2 + count) * count,
             device.info().activation_dtype,
             (2 + count) * count + 3),
        base(DeviceTensor::vector(device, random.values((2 + count) * count))),
        scales(DeviceTensor::vector(device, random.values(3))),
        all(device, kRows, count * cols, random.values(kRows * count * cols)),
        connection{.count = count,
                   .norm_eps = 1e-5F,
                   .eps = 1e-3F,
                   .made = made.view(),
                   .base = &base.view(),
                   .scales = &scales.view(),
                   .streams = all.view()} {
    made.write(random.values(kRows * (2 + count) * count));
  }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;
};

TEST_CASE("a branch reads a sum of the streams that are connected to it, and adds to all of them") {
  for (const int32_t count : {1, 2, 4, kMaxStreams}) {
    for (const int64_t cols : kWidths) {
      for (const int32_t turns : {0, 1, 20}) {
        conform("connected streams", 8e-6, 4e-6, [&](Device& device) {
          Random random(static_cast<uint32_t>(cols) + static_cast<uint32_t>(count));
          Connected connected(device, random, count, cols);
          const DeviceTensor x(device, kRows, cols, random.values(kRows * cols));
          const DeviceTensor out(device, kRows, cols, device.info().activation_dtype, cols + 5);
          run_step(device, one_sequence({0}), [&] {
            device.collapse_streams({.connection = connected.connection, .out = out.view()});
            device.expand_streams({.connection = connected.connection,
                                   .magnitude = 1.7F,
                                   .branch_eps = 0.01F,
                                   .mixing_turns = turns,
                                   .x = x.view()});
          });
          return joined(connected.all.read(), out.read());
        });
      }
    }
  }
}

TEST_CASE("rows take the root mean square of others, as if their own were not below a bound") {
  for (const int64_t cols : kWidths) {
    for (const float size : {1.0F, 0x1p-20F}) {
      conform("match_rms", 1e-6, 2e-6, [&](Device& device) {
        Random random(static_cast<uint32_t>(cols) + 40);
        Floats values = random.values(kRows * cols);
        for (float& x : values) x *= size;
        DeviceTensor x(device, kRows, cols, device.info().activation_dtype, cols + 2);
        x.write(values);
        const DeviceTensor like(device, kRows, cols, random.values(kRows * cols));
        run_step(device, one_sequence({0}), [&] {
          device.match_rms({.least_square = 1e-5F, .like = like.view(), .x = x.view()});
        });
        return x.read();
      });
    }
  }
}

TEST_CASE("of a row is kept what stands out of it, and what is not a number stays so") {
  for (const int64_t cols : kWidths) {
    for (const float deviations : {-0.5F, 0.0F, 1.6448536F}) {
      conform("statistical_top_k", 2e-6, 2e-6, [&](Device& device) {
        Random random(static_cast<uint32_t>(cols) + 50);
        DeviceTensor x(device, kRows, cols, device.info().activation_dtype, cols + 2);
        Floats values = random.values(kRows * cols);
        values.back() = std::numeric_limits<float>::quiet_NaN();
        x.write(values);
        run_step(device, one_sequence({0}),
                 [&] { device.statistical_top_k({.deviations = deviations, .x = x.view()}); });
        Floats out = x.read();
        // The last row.
        for (auto i = out.end() - cols; i != out.end(); ++i) {
          CHECK(std::isnan(*i));
          *i = 0.0F;
        }
        return out;
      });
    }
  }
}

TEST_CASE("a token that a table has no row for takes the first") {
  const auto run = [&](Device& device, DType dtype) {
    Random random(3);
    const int64_t cols = 45;
    const auto table = make_matrix(device, random.values(20 * cols), 20, cols, dtype);
    DeviceTensor out(device, 5, cols, device.info().activation_dtype, cols + 2);
    run_step(device, one_sequence({49, 0, 19, 20, 7}),
             [&] { device.embed({.table = table.get(), .out = out.view()}); });
    return out.read();
  };
  const auto reference = make_reference_device();
  allocate_small_state(*reference);
  const Floats wanted = run(*reference, DType::kF32);
  CHECK(Floats(wanted.begin(), wanted.begin() + 45) ==
        Floats(wanted.begin() + 45, wanted.begin() + 90));
  for (const DeviceCase& device_case : device_cases()) {
    const auto device = device_case.make();
    allocate_small_state(*device);
    INFO(device_case.name);
    CHECK(same_bits(run(*device, device->info().activation_dtype), wanted));
  }
}

}  // namespace tgi::streams_test
