// Kernels of layers that carry a state. See kernel_checks.h.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "engine/cpu/kernel_checks.h"

namespace tgi {
namespace {

constexpr int64_t kChannels = 37;  // two runs of sixteen, and one that is not full
constexpr int64_t kTokens = 5;
constexpr int64_t kNumbers = 11;  // of a channel's state

void add_step_checks(KernelChecks& checks) {
  const std::span<const float> x = checks.random_floats(kChannels);
  const std::span<const float> y = checks.random_floats(kChannels);
  const std::span<float> out = checks.floats(kChannels);
  const auto fresh = [=]() {
    // Small and large ones too.
    for (size_t i = 0; i < out.size(); ++i) out[i] = x[i] * (i % 3 == 0 ? 1.0F : 25.0F);
    out[7] = std::numeric_limits<float>::quiet_NaN();
    return out.data();
  };
  checks.add("softplus", [=](const KernelTable& k) {
    k.state.softplus(
        {.x = fresh(), .bias = y.data(), .min = 1e-3F, .max = 20.0F, .cols = kChannels});
    return std::span<const float>(out);
  });
  for (const bool shares : {false, true}) {
    for (const float floor : {0.0F, -5.0F}) {
      checks.add("kept", [=](const KernelTable& k) {
        k.state.kept({.x = fresh(),
                      .bias = y.data(),
                      .decay = x.data(),
                      .shares_decay = shares,
                      .floor = floor,
                      .cols = kChannels});
        return std::span<const float>(out);
      });
    }
  }
  checks.add("sigmoid", [=](const KernelTable& k) {
    k.state.sigmoid(fresh(), kChannels);
    return std::span<const float>(out);
  });
  constexpr const char* kGates[] = {"gate of silu", "gate of sigmoid", "gate of softplus"};
  for (size_t kind = 0; kind < std::size(kGates); ++kind) {
    checks.add(kGates[kind], [=](const KernelTable& k) {
      k.state.gate[kind](fresh(), y.data(), kChannels);
      return std::span<const float>(out);
    });
  }
  checks.add("multiply", [=](const KernelTable& k) {
    k.state.multiply(fresh(), y.data(), kChannels);
    return std::span<const float>(out);
  });
  checks.add("divide_by_length", [=](const KernelTable& k) {
    std::copy(x.begin(), x.end(), out.begin());
    k.state.divide_by_length(out.data(), kChannels, 0.3F);
    return std::span<const float>(out);
  });
}

void add_conv_checks(KernelChecks& checks) {
  constexpr int32_t kKernel = 4;
  const std::span<const float> x = checks.random_floats(kKernel * kChannels);
  const std::span<const float> weight = checks.random_floats(kKernel * kChannels);
  const std::span<const float> bias = checks.random_floats(kChannels);
  const std::span<float> out = checks.floats(kChannels);
  for (const bool silu : {false, true}) {
    checks.add(silu ? "convolution with silu" : "convolution", [=](const KernelTable& k) {
      ConvRow row{.kernel = kKernel,
                  .weight = weight.data(),
                  .bias = silu ? bias.data() : nullptr,
                  .out_gate = silu ? nullptr : bias.data(),
                  .silu = silu,
                  .out = out.data(),
                  .cols = kChannels};
      for (size_t j = 0; j < kKernel; ++j) row.x[j] = x.data() + j * kChannels;
      k.state.conv(row);
      return std::span<const float>(out);
    });
  }
}

void add_scan_checks(KernelChecks& checks) {
  constexpr int64_t kLanes = 13;
  const std::span<const float> x = checks.random_floats(kTokens * kLanes);
  const std::span<const float> step = checks.random_floats(kTokens * kLanes);
  const std::span<const float> b = checks.random_floats(kTokens * kNumbers);
  const std::span<const float> c = checks.random_floats(kTokens * kNumbers);
  const std::span<const float> decay = checks.random_floats(kNumbers * kLanes);
  const std::span<const float> before = checks.random_floats(kNumbers * kStateLanes);
  // What is carried on, then what is given out.
  const std::span<float> all = checks.floats(kNumbers * kStateLanes + kTokens * kLanes);
  float* const out = all.data() + kNumbers * kStateLanes;
  const auto fresh = [=]() {
    std::copy(before.begin(), before.end(), all.begin());
    return all.data();
  };
  for (const bool per_head : {false, true}) {
    checks.add(per_head ? "scan of a head" : "scan of channels", [=](const KernelTable& k) {
      const auto run = per_head ? k.state.scan_head : k.state.scan_channels;
      run({.state = fresh(),
           .num_tokens = kTokens,
           .num_channels = kLanes,
           .state_size = kNumbers,
           .decay = decay.data(),
           .decay_stride = kLanes,
           .skip = decay.data() + 1,
           .x = x.data(),
           .x_stride = kLanes,
           .step = step.data(),
           .step_stride = kLanes,
           .b = b.data(),
           .b_stride = kNumbers,
           .c = c.data(),
           .c_stride = kNumbers,
           .out = out,
           .out_stride = kLanes});
      return std::span<const float>(all);
    });
  }
  for (const bool of_numbers : {false, true}) {
    checks.add(of_numbers ? "delta rule of numbers" : "delta rule", [=](const KernelTable& k) {
      const auto run = of_numbers ? k.state.delta_of_numbers : k.state.delta;
      run({.state = fresh(),
           .num_tokens = kTokens,
           .num_channels = kLanes,
           .state_size = kNumbers,
           .strength = 1.5F,
           .q = b.data(),
           .q_stride = kNumbers,
           .k = c.data(),
           .k_stride = kNumbers,
           .v = x.data(),
           .v_stride = kLanes,
           .beta = step.data(),
           .beta_stride = kLanes,
           .kept = decay.data(),
           .kept_stride = kNumbers,
           .out = out,
           .out_stride = kLanes});
      return std::span<const float>(all);
    });
  }
}

void add_rg_lru_checks(KernelChecks& checks) {
  constexpr int64_t kLanes = 13;
  const std::span<const float> x = checks.random_floats(kTokens * kLanes);
  const std::span<const float> gates = checks.random_floats(2 * kTokens * kLanes);
  const std::span<const float> biases = checks.random_floats(2 * kLanes);
  const std::span<const float> before = checks.random_floats(kStateLanes);
  const std::span<const float> raw = checks.random_floats(kLanes);
  const std::span<float> decay = checks.floats(kLanes);
  // What is carried on, then what is given out.
  const std::span<float> all = checks.floats(kStateLanes + kTokens * kLanes);
  for (const bool begins : {false, true}) {
    checks.add("real-gated linear recurrent unit", [=](const KernelTable& k) {
      std::copy(before.begin(), before.end(), all.begin());
      // Some channels keep nearly all, some nearly nothing.
      for (size_t i = 0; i < decay.size(); ++i)
        decay[i] = -raw[i] * raw[i] * (i % 3 == 0 ? 1e-4F : i % 3 == 1 ? 1.0F : 200.0F);
      k.state.rg_lru({.state = all.data(),
                      .begins = begins,
                      .num_tokens = kTokens,
                      .num_channels = kLanes,
                      .decay = decay.data(),
                      .input_bias = biases.data(),
                      .decay_bias = biases.data() + kLanes,
                      .x = x.data(),
                      .x_stride = kLanes,
                      .input_gate = gates.data(),
                      .input_gate_stride = 2 * kLanes,
                      .decay_gate = gates.data() + kLanes,
                      .decay_gate_stride = 2 * kLanes,
                      .out = all.data() + kStateLanes,
                      .out_stride = kLanes});
      return std::span<const float>(all);
    });
  }
}

}  // namespace

void add_state_checks(KernelChecks& checks) {
  add_step_checks(checks);
  add_conv_checks(checks);
  add_scan_checks(checks);
  add_rg_lru_checks(checks);
}

}  // namespace tgi
