// ReferenceDevice: the ops of layers that carry a state, which it holds in doubles.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/reference_device.h"
#include "engine/cpu/reference_values.h"

namespace tgi {

double* ReferenceDevice::conv_state(int32_t layer, size_t sequence) {
  const int64_t place = int64_t{layer} * num_slots_ + batch_->slots[sequence];
  return state_.data() + place * state_numbers(state_layout_);
}

double* ReferenceDevice::recurrent_state(int32_t layer, size_t sequence) {
  return conv_state(layer, sequence) + conv_state_size(state_layout_);
}

void ReferenceDevice::causal_conv(const ConvArgs& args) {
  const int64_t kernel = args.weight->rows;
  const int64_t cols = args.x.cols;
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    double* const before = conv_state(args.layer, sequence);
    if (position == 0) std::fill_n(before, (kernel - 1) * cols, 0.0);
    for (int64_t col = 0; col < cols; ++col) {
      double x = at(args.x, row, col);
      if (args.x_gate.data != nullptr) x *= at(args.x_gate, row, col);
      double sum = args.bias == nullptr ? 0.0 : at(*args.bias, 0, col);
      sum += at(*args.weight, kernel - 1, col) * x;
      for (int64_t j = 0; j + 1 < kernel; ++j) {
        sum += at(*args.weight, j, col) * before[j * cols + col];
      }
      if (args.silu) sum *= sigmoid(sum);
      if (args.out_gate.data != nullptr) sum *= at(args.out_gate, row, col);
      put(args.out, row, col, sum);
      for (int64_t j = 0; j + 2 < kernel; ++j) {
        before[j * cols + col] = before[(j + 1) * cols + col];
      }
      if (kernel > 1) before[(kernel - 2) * cols + col] = x;
    }
  });
}

void ReferenceDevice::channel_scan(const ChannelScanArgs& args) {
  const int64_t state_size = args.decay->rows;
  const int64_t cols = args.x.cols;
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    double* const state = recurrent_state(args.layer, sequence);
    if (position == 0) std::fill_n(state, state_size * cols, 0.0);
    for (int64_t col = 0; col < cols; ++col) {
      const double x = at(args.x, row, col);
      const double step = softplus(at(args.dt, row, col));
      double sum = 0.0;
      for (int64_t s = 0; s < state_size; ++s) {
        double& h = state[s * cols + col];
        h = std::exp(step * at(*args.decay, s, col)) * h + step * at(args.b, row, s) * x;
        sum += at(args.c, row, s) * h;
      }
      put(args.out, row, col, sum + at(*args.skip, 0, col) * x);
    }
  });
}

void ReferenceDevice::head_scan(const HeadScanArgs& args) {
  const int64_t state_size = state_layout_.state_size;
  const int64_t head_dim = state_layout_.head_dim;
  const int64_t heads_per_group = state_layout_.num_heads / args.num_groups;
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    double* const state = recurrent_state(args.layer, sequence);
    const int64_t cols = state_layout_.num_heads * head_dim;
    if (position == 0) std::fill_n(state, cols * state_size, 0.0);
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t head = col / head_dim;
      const int64_t group = head / heads_per_group * state_size;
      const double x = at(args.x, row, col);
      const double raw = softplus(at(args.dt, row, head) + at(*args.dt_bias, 0, head));
      const double step = std::min(std::max(raw, static_cast<double>(args.min_step)),
                                   static_cast<double>(args.max_step));
      const double kept = std::exp(step * at(*args.decay, 0, head));
      double sum = 0.0;
      for (int64_t s = 0; s < state_size; ++s) {
        double& h = state[col * state_size + s];
        h = kept * h + step * at(args.b, row, group + s) * x;
        sum += at(args.c, row, group + s) * h;
      }
      put(args.out, row, col, sum + at(*args.skip, 0, head) * x);
    }
  });
}

void ReferenceDevice::delta_rule(const DeltaRuleArgs& args) {
  const int64_t key_dim = state_layout_.state_size;
  const int64_t head_dim = state_layout_.head_dim;
  const int64_t heads_per_key = state_layout_.num_heads / args.num_key_heads;
  const auto inverse_length = [&](const Tensor& x, int64_t row, int64_t column) {
    double squares = 0.0;
    for (int64_t s = 0; s < key_dim; ++s) squares += std::pow(at(x, row, column + s), 2);
    return 1.0 / std::sqrt(squares + static_cast<double>(kDeltaNormEps));
  };
  const auto kept = [&](int64_t row, int64_t head, int64_t column) {
    const double raw = at(args.dt, row, column) + at(*args.dt_bias, 0, column);
    const double decay = at(*args.decay, 0, head);
    const auto floor = static_cast<double>(args.floor);
    return std::exp(floor < 0.0 ? floor * sigmoid(-decay * raw) : decay * softplus(raw));
  };
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    double* const state = recurrent_state(args.layer, sequence);
    const int64_t cols = state_layout_.num_heads * head_dim;
    if (position == 0) std::fill_n(state, cols * key_dim, 0.0);
    for (int64_t col = 0; col < cols; ++col) {
      const int64_t head = col / head_dim;
      const int64_t key = head / heads_per_key * key_dim;
      const double q_scale =
          inverse_length(args.q, row, key) / std::sqrt(static_cast<double>(key_dim));
      const double k_scale = inverse_length(args.k, row, key);
      double* const h = state + col * key_dim;
      double known = 0.0;
      for (int64_t s = 0; s < key_dim; ++s) {
        h[s] *= kept(row, head, state_layout_.decays_numbers ? head * key_dim + s : head);
        known += at(args.k, row, key + s) * k_scale * h[s];
      }
      const double strength =
          static_cast<double>(args.strength) * sigmoid(at(args.beta, row, head));
      const double change = strength * (at(args.v, row, col) - known);
      double sum = 0.0;
      for (int64_t s = 0; s < key_dim; ++s) {
        h[s] += at(args.k, row, key + s) * k_scale * change;
        sum += at(args.q, row, key + s) * q_scale * h[s];
      }
      put(args.out, row, col, sum);
    }
  });
}

void ReferenceDevice::rg_lru(const RgLruArgs& args) {
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    double* const state = recurrent_state(args.layer, sequence);
    for (int64_t col = 0; col < args.x.cols; ++col) {
      const auto gate = [&](const Tensor& x, const Tensor& bias) {
        return sigmoid(at(x, row, col) + at(bias, 0, col));
      };
      const double log = at(*args.decay, 0, col) * gate(args.decay_gate, *args.decay_bias);
      const double input = at(args.x, row, col) * gate(args.input_gate, *args.input_bias);
      const double share = position == 0 ? 1.0 : std::sqrt(-std::expm1(2.0 * log));
      const double before = position == 0 ? 0.0 : state[col];
      state[col] = std::exp(log) * before + share * input;
      put(args.out, row, col, state[col]);
    }
  });
}

void ReferenceDevice::gated_norm(const GatedNormArgs& args) {
  const auto gate = [&](int64_t row, int64_t col) {
    const double x = at(args.gate, row, col / (args.x.cols / args.gate.cols));
    switch (args.kind) {
      case GateKind::kSilu:
        return x * sigmoid(x);
      case GateKind::kSigmoid:
        return sigmoid(x);
      case GateKind::kSoftplus:
        return softplus(x);
    }
    throw Error(Code::kInternal, "unknown gate");
  };
  const int64_t group_size = args.weight == nullptr ? args.x.cols : args.group_size;
  std::vector<double> group(static_cast<size_t>(group_size));
  for (int64_t row = 0; row < args.x.rows; ++row) {
    for (int64_t begin = 0; begin < args.x.cols; begin += group_size) {
      double squares = 0.0;
      for (int64_t i = 0; i < group_size; ++i) {
        double& x = group[static_cast<size_t>(i)];
        x = at(args.x, row, begin + i);
        if (!args.norm_first) x *= gate(row, begin + i);
        squares += x * x;
      }
      const double mean = squares / static_cast<double>(group_size);
      const double inverse = 1.0 / std::sqrt(mean + static_cast<double>(args.eps));
      for (int64_t i = 0; i < group_size; ++i) {
        double x = group[static_cast<size_t>(i)];
        if (args.weight != nullptr) {
          const bool is_shared = args.weight->cols == group_size;
          x *= inverse * at(*args.weight, 0, is_shared ? i : begin + i);
        }
        if (args.norm_first) x *= gate(row, begin + i);
        put(args.x, row, begin + i, x);
      }
    }
  }
}

}  // namespace tgi
