// Kernels of hidden states in several streams. See kernel_checks.h.
#include <algorithm>
#include <span>

#include "engine/cpu/kernel_checks.h"

namespace tgi {
namespace {

constexpr int64_t kStreamCols = 53;  // three runs of sixteen, and one that is not full
constexpr int32_t kCount = 5;

void add_mixing_checks(KernelChecks& checks) {
  const std::span<const float> routed = checks.random_floats(kCount);
  const std::span<const float> matrix = checks.random_floats(kCount * kCount * kCount);
  const std::span<const float> before = checks.random_floats(kCount * kStreamCols);
  const std::span<const float> x = checks.random_floats(kStreamCols);
  const std::span<const float> scales = checks.random_floats(kStreamCols);
  const std::span<float> out = checks.floats((kCount + 1) * kStreamCols);
  const auto row = [=]() {
    std::fill(std::copy(before.begin(), before.end(), out.begin()), out.end(), 0.0F);
    return StreamsRow{.routing = {.count = kCount,
                                  .scale = 2.5F,
                                  .routed = routed.data(),
                                  .matrix = matrix.data()},
                      .active = 3,
                      .x = x.data(),
                      .scales = scales.data(),
                      .streams = out.data(),
                      .out = out.data() + kCount * kStreamCols,
                      .cols = kStreamCols};
  };
  checks.add("predict_streams", [=](const KernelTable& k) {
    k.streams.predict(row());
    return std::span<const float>(out);
  });
  const std::span<const float> base = checks.random_floats((2 + kCount) * kCount);
  const auto connected = [=]() {
    std::fill(std::copy(before.begin(), before.end(), out.begin()), out.end(), 0.0F);
    return ConnectedRow{.count = kCount,
                        .norm_eps = 1e-3F,
                        .eps = 1e-4F,
                        .made = matrix.data(),
                        .base = base.data(),
                        .scales = routed.data(),
                        .streams = out.data(),
                        .cols = kStreamCols,
                        .out = out.data() + kCount * kStreamCols,
                        .magnitude = 1.5F,
                        .branch_eps = 1e-3F,
                        .mixing_turns = 3,
                        .x = x.data()};
  };
  checks.add("collapse_streams", [=](const KernelTable& k) {
    k.streams.collapse(connected());
    return std::span<const float>(out);
  });
  checks.add("expand_streams", [=](const KernelTable& k) {
    k.streams.expand(connected());
    return std::span<const float>(out);
  });
  checks.add("correct_streams", [=](const KernelTable& k) {
    k.streams.correct(row());
    return std::span<const float>(out);
  });
}

}  // namespace

void add_stream_checks(KernelChecks& checks) {
  add_mixing_checks(checks);
  const std::span<const float> x = checks.random_floats(kStreamCols);
  const std::span<const float> like = checks.random_floats(kStreamCols);
  const std::span<float> out = checks.floats(kStreamCols);
  for (const float least : {0.0F, 4.0F}) {
    checks.add(least == 0.0F ? "match_rms" : "match_rms of a small row", [=](const KernelTable& k) {
      std::copy(x.begin(), x.end(), out.begin());
      k.streams.match_rms(like.data(), out.data(), kStreamCols, least);
      return std::span<const float>(out);
    });
  }
  checks.add("statistical_top_k", [=](const KernelTable& k) {
    std::copy(x.begin(), x.end(), out.begin());
    k.streams.statistical_top_k(out.data(), kStreamCols, 0.8F);
    return std::span<const float>(out);
  });
}

}  // namespace tgi
