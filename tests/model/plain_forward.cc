#include "tests/model/plain_forward.h"

#include <algorithm>
#include <cmath>

#include "tests/model/fake_device.h"

namespace tgi {
namespace {

using Row = std::vector<double>;

Row multiply(const Linear& linear, const Row& x) {
  const FakeMatrix& w = fake(*linear.weight);
  Row out(static_cast<size_t>(w.rows), 0.0);
  const std::vector<float> bias =
      linear.bias.get() != nullptr ? vector_values(linear.bias) : std::vector<float>();
  for (int64_t row = 0; row < w.rows; ++row) {
    double sum = bias.empty() ? 0.0 : bias[static_cast<size_t>(row)];
    for (int64_t col = 0; col < w.cols; ++col) sum += w.at(row, col) * x[static_cast<size_t>(col)];
    out[static_cast<size_t>(row)] = sum;
  }
  return out;
}

Row normalise(NormKind kind,
              double eps,
              double offset,
              const DeviceVector& weight,
              const DeviceVector& bias,
              const Row& x) {
  double mean = 0.0;
  if (kind == NormKind::kLayer) {
    for (const double value : x) mean += value / static_cast<double>(x.size());
  }
  double square = 0.0;
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  const std::vector<float> w = vector_values(weight);
  Row out(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    out[i] = (x[i] - mean) / std::sqrt(square + eps) * (w[i] + offset);
  if (bias.get() != nullptr) {
    const std::vector<float> b = vector_values(bias);
    for (size_t i = 0; i < x.size(); ++i) out[i] += b[i];
  }
  return out;
}

double activate(Activation kind, double x) {
  switch (kind) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kReluSquared:
      return std::max(x, 0.0) * std::max(x, 0.0);
  }
  return 0.0;
}

double frequency(const RopeSpec& rope, size_t i, int64_t position) {
  const int32_t original = rope.dynamic_original_positions;
  if (original == 0 || position < original) return rope.inv_freq[i];
  const double dim = rope.rotary_dim;
  const double grown = rope.dynamic_factor * static_cast<double>(position + 1) / original -
                       (rope.dynamic_factor - 1.0);
  const double base = rope.base * std::pow(grown, dim / (dim - 2.0));
  return std::pow(base, -2.0 * static_cast<double>(i) / dim);
}

void rotate(const RopeSpec& rope, int64_t position, double* head) {
  const size_t half = rope.inv_freq.size();
  for (size_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * frequency(rope, i, position);
    const double cosine = std::cos(angle) * rope.attention_factor;
    const double sine = std::sin(angle) * rope.attention_factor;
    const double a = head[i];
    const double b = head[i + half];
    head[i] = a * cosine - b * sine;
    head[i + half] = b * cosine + a * sine;
  }
}

// Norms and rotates the heads [begin, begin + count) of a fused row.
void prepare_heads(const ModelConfig& config,
                   const DeviceVector& norm,
                   int64_t begin,
                   int64_t count,
                   int64_t position,
                   Row& qkv) {
  const int64_t dim = config.head_dim;
  for (int64_t head = begin; head < begin + count; ++head) {
    const auto first = qkv.begin() + head * dim;
    if (norm.get() != nullptr) {
      const Row normed =
          normalise(NormKind::kRms, config.norm_eps, 0.0, norm, {}, Row(first, first + dim));
      std::copy(normed.begin(), normed.end(), first);
    }
    if (config.rotary) rotate(config.rope, position, &*first);
  }
}

// Attention of the last row over all rows.
Row attend(const ModelConfig& config, const std::vector<Row>& qkv, int32_t window) {
  const auto dim = static_cast<size_t>(config.head_dim);
  const auto num_heads = static_cast<size_t>(config.num_heads);
  const auto num_kv_heads = static_cast<size_t>(config.num_kv_heads);
  const size_t num_tokens = qkv.size();
  const size_t begin = window > 0 && num_tokens > static_cast<size_t>(window)
                           ? num_tokens - static_cast<size_t>(window)
                           : 0;
  Row out(num_heads * dim, 0.0);
  for (size_t head = 0; head < num_heads; ++head) {
    const size_t key = (num_heads + head / (num_heads / num_kv_heads)) * dim;
    const size_t value = key + num_kv_heads * dim;
    Row score(num_tokens, 0.0);
    double highest = -1e300;
    for (size_t t = begin; t < num_tokens; ++t) {
      for (size_t i = 0; i < dim; ++i) score[t] += qkv.back()[head * dim + i] * qkv[t][key + i];
      score[t] *= config.attention_scale;
      highest = std::max(highest, score[t]);
    }
    double sum = 0.0;
    for (size_t t = begin; t < num_tokens; ++t) sum += score[t] = std::exp(score[t] - highest);
    for (size_t t = begin; t < num_tokens; ++t) {
      for (size_t i = 0; i < dim; ++i) out[head * dim + i] += score[t] / sum * qkv[t][value + i];
    }
  }
  return out;
}

Row run_mlp(const ModelConfig& config, const LayerWeights& layer, const Row& x) {
  const Row in = multiply(layer.gate_up, x);
  Row middle(static_cast<size_t>(config.intermediate_size));
  for (size_t i = 0; i < middle.size(); ++i) {
    middle[i] = activate(config.activation, in[i]);
    if (config.gated_mlp) middle[i] *= in[i + middle.size()];
  }
  return multiply(layer.down, middle);
}

void add_to(Row& x, const Row& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

Row table_row(const Matrix& table, int64_t index) {
  const FakeMatrix& matrix = fake(table);
  const auto first = matrix.values.begin() + index * matrix.cols;
  return Row(first, first + matrix.cols);
}

int32_t window_of(const ModelConfig& config, size_t layer) {
  const bool uses = config.layer_uses_window.empty() || config.layer_uses_window[layer];
  return uses ? config.sliding_window : 0;
}

void run_layer(const ModelConfig& config,
               const LayerWeights& layer,
               int32_t window,
               std::vector<Row>& hidden) {
  std::vector<Row> qkv;
  for (size_t t = 0; t < hidden.size(); ++t) {
    const auto position = static_cast<int64_t>(t);
    qkv.push_back(
        multiply(layer.qkv, normalise(config.norm_kind, config.norm_eps, config.norm_weight_offset,
                                      layer.attention_norm, layer.attention_norm_bias, hidden[t])));
    prepare_heads(config, layer.q_norm, 0, config.num_heads, position, qkv.back());
    prepare_heads(config, layer.k_norm, config.num_heads, config.num_kv_heads, position,
                  qkv.back());
    add_to(hidden[t], multiply(layer.o, attend(config, qkv, window)));
    add_to(hidden[t],
           run_mlp(config, layer,
                   normalise(config.norm_kind, config.norm_eps, config.norm_weight_offset,
                             layer.mlp_norm, layer.mlp_norm_bias, hidden[t])));
  }
}

}  // namespace

std::vector<std::vector<double>> plain_logits(const ModelConfig& config,
                                              const ModelWeights& weights,
                                              const std::vector<int32_t>& token_ids) {
  std::vector<Row> hidden;
  for (size_t t = 0; t < token_ids.size(); ++t) {
    hidden.push_back(table_row(*weights.token_embedding, token_ids[t]));
    for (double& value : hidden.back()) value *= config.embedding_multiplier;
    if (config.learned_positions) {
      add_to(hidden.back(), table_row(*weights.position_embedding, static_cast<int64_t>(t)));
    }
  }
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    run_layer(config, weights.layers[i], window_of(config, i), hidden);
  }
  std::vector<Row> logits;
  const FakeMatrix& head = fake(weights.lm_head());
  for (const Row& row : hidden) {
    const Row x = normalise(config.norm_kind, config.norm_eps, config.norm_weight_offset,
                            weights.final_norm, weights.final_norm_bias, row);
    Row& out = logits.emplace_back(static_cast<size_t>(head.rows), 0.0);
    for (int64_t id = 0; id < head.rows; ++id) {
      for (int64_t col = 0; col < head.cols; ++col) {
        out[static_cast<size_t>(id)] += head.at(id, col) * x[static_cast<size_t>(col)];
      }
    }
  }
  return logits;
}

}  // namespace tgi
