// Layers that carry a state: convolution over time, the scans of Mamba 1 and 2, the gated delta
// rule, the real-gated linear recurrent unit (see engine/device/state_ops.h). Sixteen channels side
// by side, token after token; sums over a channel's state run in four interleaved parts that are
// added in one order.
#pragma once

#include "engine/cpu/kernels/kernel_table.h"
#include "engine/cpu/kernels/vector_math.h"

namespace tgi {

template <typename V>
V sigmoid_lanes(V x) {
  const V one = V::set1(1.0F);
  return one / (one + vector_exp(-x));
}

// log(1 + exp(x)), exact to a few ulp also where it is tiny.
template <typename V>
V vector_softplus(V x) {
  const V u = vector_exp(-x.abs());
  const V one_more = u + V::set1(1.0F);
  V mantissa, exponent;
  one_more.split(mantissa, exponent);
  const V f = V::select(V::equal(exponent, V::zero()), u, mantissa - V::set1(1.0F));
  V log = V::fma(exponent, V::set1(0x1.62e43p-1F), vector_log1p_near_zero(f));
  log = V::fma(exponent, V::set1(-0x1.05c610p-29F), log);
  return V::select(V::is_nan(x), x, V::max(V::zero(), x) + log);
}

template <typename V>
void softplus_row(const StepRow& row) {
  for (int64_t i = 0; i < row.cols; i += 16) {
    const int64_t left = row.cols - i;
    V x = V::load_first(row.x + i, left);
    if (row.bias != nullptr) x = x + V::load_first(row.bias + i, left);
    const V step = V::max(V::set1(row.min), V::min(V::set1(row.max), vector_softplus(x)));
    // A limit must not turn what is no number into one.
    V::select(V::is_nan(x), x, step).store_first(row.x + i, left);
  }
}

template <typename V>
void sigmoid_row(float* x, int64_t cols) {
  for (int64_t i = 0; i < cols; i += 16) {
    sigmoid_lanes(V::load_first(x + i, cols - i)).store_first(x + i, cols - i);
  }
}

template <typename V, GateKind kKind>
void gate_row(float* x, const float* gate, int64_t cols) {
  for (int64_t i = 0; i < cols; i += 16) {
    const int64_t left = cols - i;
    const V g = V::load_first(gate + i, left);
    V y = V::load_first(x + i, left);
    if constexpr (kKind == GateKind::kSilu) {
      y = y * (g / (V::set1(1.0F) + vector_exp(-g)));
    } else if constexpr (kKind == GateKind::kSoftplus) {
      y = y * vector_softplus(g);
    } else {
      y = y * sigmoid_lanes(g);
    }
    y.store_first(x + i, left);
  }
}

template <typename V>
void multiply_row(float* x, const float* y, int64_t cols) {
  for (int64_t i = 0; i < cols; i += 16) {
    const int64_t left = cols - i;
    (V::load_first(x + i, left) * V::load_first(y + i, left)).store_first(x + i, left);
  }
}

// x times scale, divided by its length.
template <typename V>
void divide_by_length(float* x, int64_t cols, float scale) {
  V total = V::zero();
  for (int64_t i = 0; i < cols; i += 16) {
    const V v = V::load_first(x + i, cols - i);
    total = V::fma(v, v, total);
  }
  const V factor = V::set1(scale / __builtin_sqrtf(total.sum() + kDeltaNormEps));
  for (int64_t i = 0; i < cols; i += 16) {
    (V::load_first(x + i, cols - i) * factor).store_first(x + i, cols - i);
  }
}

template <typename V>
void conv_row(const ConvRow& row) {
  for (int64_t i = 0; i < row.cols; i += 16) {
    const int64_t left = row.cols - i;
    V sum = row.bias == nullptr ? V::zero() : V::load_first(row.bias + i, left);
    for (int32_t j = 0; j < row.kernel; ++j) {
      const V weight = V::load_first(row.weight + j * row.cols + i, left);
      sum = V::fma(weight, V::load_first(row.x[j] + i, left), sum);
    }
    if (row.silu) sum = sum / (V::set1(1.0F) + vector_exp(-sum));
    if (row.out_gate != nullptr) sum = sum * V::load_first(row.out_gate + i, left);
    sum.store_first(row.out + i, left);
  }
}

// Adds up in four parts.
template <typename V>
struct FourSums {
  V parts[4] = {V::zero(), V::zero(), V::zero(), V::zero()};

  void add(int64_t s, V a, V b) { parts[s % 4] = V::fma(a, b, parts[s % 4]); }
  V total() const { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }
};

// kPerHead: one step, and one decay, for all channels; else one for each, and decay for each number
// of its state too.
template <typename V, bool kPerHead>
void scan_block(const ScanBlock& block) {
  const int64_t lanes = block.num_channels;
  const V skip = kPerHead ? V::set1(*block.skip) : V::load_first(block.skip, lanes);
  for (int64_t t = 0; t < block.num_tokens; ++t) {
    const float* const dt = block.step + t * block.step_stride;
    const float* const b = block.b + t * block.b_stride;
    const float* const c = block.c + t * block.c_stride;
    const V x = V::load_first(block.x + t * block.x_stride, lanes);
    const V step = kPerHead ? V::set1(*dt) : V::load_first(dt, lanes);
    const V input = step * x;
    V kept = V::zero();
    if constexpr (kPerHead) kept = vector_exp(step * V::set1(*block.decay));
    FourSums<V> sums;
    for (int64_t s = 0; s < block.state_size; ++s) {
      if constexpr (!kPerHead) {
        kept = vector_exp(step * V::load_first(block.decay + s * block.decay_stride, lanes));
      }
      float* const held = block.state + s * kStateLanes;
      const V h = V::fma(kept, V::load(held), input * V::set1(b[s]));
      h.store(held);
      sums.add(s, V::set1(c[s]), h);
    }
    V::fma(skip, x, sums.total()).store_first(block.out + t * block.out_stride, lanes);
  }
}

template <typename V>
void kept_row(const KeptRow& row) {
  for (int64_t i = 0; i < row.cols; i += 16) {
    const int64_t left = row.cols - i;
    const V raw = V::load_first(row.x + i, left) + V::load_first(row.bias + i, left);
    const V decay = row.shares_decay ? V::set1(*row.decay) : V::load_first(row.decay + i, left);
    const V log = row.floor < 0.0F ? V::set1(row.floor) * sigmoid_lanes(-(decay * raw))
                                   : vector_softplus(raw) * decay;
    vector_exp(log).store_first(row.x + i, left);
  }
}

// kOfNumbers: each number of a head decays by itself; else all as one.
template <typename V, bool kOfNumbers>
void delta_block(const DeltaBlock& block) {
  const int64_t lanes = block.num_channels;
  for (int64_t t = 0; t < block.num_tokens; ++t) {
    const float* const q = block.q + t * block.q_stride;
    const float* const k = block.k + t * block.k_stride;
    const float* const kept = block.kept + t * block.kept_stride;
    FourSums<V> known;
    for (int64_t s = 0; s < block.state_size; ++s) {
      float* const held = block.state + s * kStateLanes;
      const V h = V::load(held) * V::set1(kept[kOfNumbers ? s : 0]);
      h.store(held);
      known.add(s, V::set1(k[s]), h);
    }
    const V v = V::load_first(block.v + t * block.v_stride, lanes);
    const V change =
        V::set1(block.strength * block.beta[t * block.beta_stride]) * (v - known.total());
    FourSums<V> out;
    for (int64_t s = 0; s < block.state_size; ++s) {
      float* const held = block.state + s * kStateLanes;
      const V h = V::fma(V::set1(k[s]), change, V::load(held));
      h.store(held);
      out.add(s, V::set1(q[s]), h);
    }
    out.total().store_first(block.out + t * block.out_stride, lanes);
  }
}

// 1 - exp(x) for x <= 0, exact also near 0.
template <typename V>
V lost_share(V x) {
  const V near = -(vector_exp_less_tangent(x) + x);
  return V::select(V::less(x, V::set1(-1.0F)), V::set1(1.0F) - vector_exp(x), near);
}

template <typename V>
void rg_lru_block(const RgLruBlock& block) {
  const int64_t lanes = block.num_channels;
  const auto gate = [lanes](const float* x, const float* bias) {
    return sigmoid_lanes(V::load_first(x, lanes) + V::load_first(bias, lanes));
  };
  const V decay = V::load_first(block.decay, lanes);
  V h = V::load(block.state);
  for (int64_t t = 0; t < block.num_tokens; ++t) {
    const V log = decay * gate(block.decay_gate + t * block.decay_gate_stride, block.decay_bias);
    V input = V::load_first(block.x + t * block.x_stride, lanes) *
              gate(block.input_gate + t * block.input_gate_stride, block.input_bias);
    if (t > 0 || !block.begins) input = input * lost_share(log + log).sqrt();
    h = V::fma(vector_exp(log), h, input);
    h.store_first(block.out + t * block.out_stride, lanes);
  }
  h.store(block.state);
}

}  // namespace tgi
