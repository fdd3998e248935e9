// See reference_device.h.
#include "engine/cpu/reference_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "base/error.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/cpu_device_internal.h"
#include "engine/cpu/host_resources.h"
#include "engine/cpu/panel_matrix.h"
#include "engine/cpu/plain_matrix.h"
#include "engine/cpu/rope_table.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

double at(const Tensor& tensor, int64_t row, int64_t col) {
  return row_of(tensor, row)[col];
}

void put(const Tensor& tensor, int64_t row, int64_t col, double value) {
  mutable_row_of(tensor, row)[col] = static_cast<float>(value);
}

double dot(const std::vector<double>& x, const PlainMatrix& w, int64_t w_row) {
  double sum = 0.0;
  for (int64_t k = 0; k < w.cols; ++k) sum += x[static_cast<size_t>(k)] * w.at(w_row, k);
  return sum;
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
  return x;
}

// What is not a number stays so.
double limited_silu(const GateLimits& limits, double gate, double up) {
  const auto limit = static_cast<double>(limits.limit);
  if (gate > limit) gate = limit;
  up = std::clamp(up, -limit, limit);
  const double sigmoid = 1.0 / (1.0 + std::exp(-static_cast<double>(limits.slope) * gate));
  return gate * sigmoid * (up + static_cast<double>(limits.up_offset));
}

double cap(double x, double softcap) {
  return softcap == 0.0 ? x : softcap * std::tanh(x / softcap);
}

void norm_head(
    NormKind kind, float* head, const float* weight, const float* bias, double eps, int64_t count) {
  double mean = 0.0;
  for (int64_t i = 0; i < count && kind == NormKind::kLayer; ++i) {
    mean += static_cast<double>(head[i]) / static_cast<double>(count);
  }
  double squares = 0.0;
  for (int64_t i = 0; i < count; ++i) squares += (head[i] - mean) * (head[i] - mean);
  const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(count) + eps);
  for (int64_t i = 0; i < count; ++i) {
    const double shift = bias == nullptr ? 0.0 : bias[i];
    head[i] = static_cast<float>((head[i] - mean) * inverse * weight[i] + shift);
  }
}

void rotate_head(float* head, const RopeSpec& rope, const std::vector<float>& cos_sin) {
  const auto half = static_cast<size_t>(rope.rotary_dim) / 2;
  for (size_t i = 0; i < half; ++i) {
    float& a = head[rope.interleaved ? 2 * i : i];
    float& b = head[rope.interleaved ? 2 * i + 1 : i + half];
    const double cosine = cos_sin[i];
    const double sine = cos_sin[half + i];
    const double x = a;
    const double y = b;
    a = static_cast<float>(x * cosine - y * sine);
    b = static_cast<float>(y * cosine + x * sine);
  }
}

}  // namespace

std::unique_ptr<Device> make_reference_device(int world_size) {
  return std::make_unique<ReferenceDevice>(world_size);
}

ReferenceDevice::ReferenceDevice(int world_size) {
  info_ = {.backend = "reference",
           .isa = "reference",
           .description = cpu_description(),
           .num_threads = 1,
           .memory_bytes = available_memory_bytes() / world_size,
           .activation_dtype = DType::kF32};
}

Buffer ReferenceDevice::allocate(size_t size_bytes, std::string_view purpose) {
  return map_memory(size_bytes, purpose);
}

void ReferenceDevice::copy_to_device(void* to, const void* from, size_t size_bytes) {
  std::memcpy(to, from, size_bytes);
}

void ReferenceDevice::copy_to_host(void* to, const void* from, size_t size_bytes) {
  std::memcpy(to, from, size_bytes);
}

int64_t ReferenceDevice::matrix_bytes(std::string_view format,
                                      const MatrixStorage& storage,
                                      int64_t rows,
                                      int64_t cols) const {
  require_format(format, storage, "matrix");
  return rows * cols * int64_t{sizeof(float)};
}

std::unique_ptr<Matrix> ReferenceDevice::make_matrix(std::span<const HostWeight> pieces,
                                                     const MatrixStorage& storage) {
  return std::make_unique<PlainMatrix>(pieces, storage);
}

int32_t ReferenceDevice::add_rope(const RopeSpec& rope) {
  ropes_.push_back(rope);
  return static_cast<int32_t>(ropes_.size()) - 1;
}

int64_t ReferenceDevice::kv_bytes(const KvLayout& layout) const {
  return int64_t{layout.latent_dim > 0 ? 1 : 2} * layout.num_layers * layout.num_blocks *
         layout.num_kv_heads * layout.block_size * layout.head_dim * int64_t{sizeof(float)};
}

int64_t ReferenceDevice::slot_bytes(const SlotLayout& layout) const {
  return SlotTable::bytes(layout) + SamplerScratch::bytes(layout.vocab_size) +
         int64_t{layout.vocab_size} * int64_t{sizeof(float)} +
         2 * state_bytes(layout.state, layout.num_slots);
}

void ReferenceDevice::allocate_state(const KvLayout& kv, const SlotLayout& slots) {
  TGI_CHECK(slots.block_size == kv.block_size);
  kv_ = kv;
  slots_.emplace(slots);
  vocab_size_ = slots.vocab_size;
  const size_t num_cached = static_cast<size_t>(kv_bytes(kv)) / sizeof(float);
  keys_.assign(kv.latent_dim > 0 ? num_cached : num_cached / 2, 0.0F);
  values_.assign(kv.latent_dim > 0 ? 0 : num_cached / 2, 0.0F);
  state_layout_ = slots.state;
  num_slots_ = slots.num_slots;
  state_.assign(static_cast<size_t>(state_bytes(slots.state, slots.num_slots)) / sizeof(float),
                0.0);
}

Ticket ReferenceDevice::submit(const Batch& batch, Forward& forward) {
  ++step_;
  batch_ = &batch;
  slots_->apply(batch);
  result_.sampled.resize(batch.sample_rows.size());
  result_.scores.resize(batch.score_rows.size());
  result_.score_tops.resize(batch.score_rows.size());
  rows_.begin(batch);
  forward_ = &forward;
  forward.run(batch.num_tokens(), batch.num_logit_rows());
  batch_ = nullptr;
  return step_;
}

void ReferenceDevice::sample(Ticket ticket, const TokenMasks& masks) {
  TGI_CHECK(ticket == step_);
  rows_.sample(masks, vocab_size_);
  if (rows_.num_rows() > 0) forward_->sample(rows_.num_rows());
}

const StepResult& ReferenceDevice::wait(Ticket ticket) {
  TGI_CHECK(ticket == step_ && !rows_.is_open());
  return result_;
}

float* ReferenceDevice::cached(std::vector<float>& cache,
                               int32_t layer,
                               int32_t kv_head,
                               size_t sequence,
                               int64_t position) const {
  const int64_t block = slots_->block_table(batch_->slots[sequence])[position / kv_.block_size];
  const int64_t index =
      (((int64_t{layer} * kv_.num_blocks + block) * kv_.num_kv_heads + kv_head) * kv_.block_size +
       position % kv_.block_size) *
      kv_.head_dim;
  return cache.data() + index;
}

void ReferenceDevice::embed(const EmbedArgs& args) {
  const auto& table = static_cast<const PlainMatrix&>(*args.table);
  const auto* positions = static_cast<const PlainMatrix*>(args.position_table);
  for (int64_t row = 0; row < args.out.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    const int32_t id = slots_->resolve(batch_->token_ids[i]);
    for (int64_t col = 0; col < table.cols; ++col) {
      double value = table.at(id, col) * static_cast<double>(args.multiplier);
      if (positions != nullptr) value += positions->at(batch_->positions[i], col);
      put(args.out, row, col, value);
    }
  }
}

void ReferenceDevice::norm(const NormArgs& args) {
  const bool layer = args.kind == NormKind::kLayer;
  const auto count = static_cast<double>(args.x.cols);
  std::vector<double> x(static_cast<size_t>(args.x.cols));
  for (int64_t row = 0; row < args.x.rows; ++row) {
    double sum = 0.0;
    for (int64_t col = 0; col < args.x.cols; ++col) {
      double value = at(args.x, row, col);
      if (args.residual.data != nullptr) {
        put(args.residual, row, col,
            at(args.residual, row, col) + value * static_cast<double>(args.x_multiplier));
        value = at(args.residual, row, col);
      }
      x[static_cast<size_t>(col)] = value;
      sum += value;
    }
    const double mean = layer ? sum / count : 0.0;
    double squares = 0.0;
    for (const double value : x) squares += (value - mean) * (value - mean);
    const double inverse = 1.0 / std::sqrt(squares / count + static_cast<double>(args.eps));
    for (int64_t col = 0; col < args.x.cols; ++col) {
      const double weight = at(*args.weight, 0, col);
      const double bias = args.bias == nullptr ? 0.0 : at(*args.bias, 0, col);
      put(args.out, row, col, (x[static_cast<size_t>(col)] - mean) * inverse * weight + bias);
    }
  }
}

void ReferenceDevice::matmul(const MatmulArgs& args) {
  const auto& w = static_cast<const PlainMatrix&>(*args.w);
  for (int64_t row = 0; row < args.x.rows; ++row) {
    const std::vector<double> x = w.rounded(row_of(args.x, row));
    for (int64_t n = 0; n < w.rows; ++n) {
      const double bias = args.bias == nullptr ? 0.0 : at(*args.bias, 0, n);
      put(args.out, row, n, dot(x, w, n) + bias);
    }
  }
}

namespace {

double query_scale(const PositionScale& scale, int32_t position) {
  const double spans = std::floor(static_cast<double>(position + scale.offset) / scale.positions);
  return 1.0 + static_cast<double>(scale.beta) * std::log(1.0 + spans);
}

}  // namespace

void ReferenceDevice::qk_norm_rope_store_kv(const QkvArgs& args) {
  const int64_t dim = args.head_dim;
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    float* const heads = mutable_row_of(args.qkv, row);
    std::vector<float> cos_sin;
    if (args.rope >= 0) {
      const RopeSpec& rope = ropes_[static_cast<size_t>(args.rope)];
      cos_sin.resize(static_cast<size_t>(rope.rotary_dim));
      fill_cos_sin(rope, batch_->positions[static_cast<size_t>(row)], cos_sin.data());
    }
    const auto norm = [&](int32_t h) {
      const float* weight = head_norm_weight(args, h);
      if (weight == nullptr) return;
      norm_head(args.norm_kind, heads + h * dim, weight, head_norm_bias(args, h),
                static_cast<double>(args.norm_eps), dim);
    };
    for (int64_t i = 0; args.clip > 0.0F && i < args.qkv.cols; ++i) {
      heads[i] = std::min(std::max(heads[i], -args.clip), args.clip);
    }
    for (int32_t h = 0; h < args.num_heads + args.num_kv_heads; ++h) {
      if (!args.norm_after_rope) norm(h);
      if (args.rope >= 0) {
        rotate_head(heads + h * dim, ropes_[static_cast<size_t>(args.rope)], cos_sin);
      }
      if (args.norm_after_rope) norm(h);
    }
    const double scale = query_scale(args.query_scale, batch_->positions[static_cast<size_t>(row)]);
    for (int64_t i = 0; i < args.num_heads * dim; ++i) {
      heads[i] = static_cast<float>(static_cast<double>(heads[i]) * scale);
    }
    const float* const k = heads + args.num_heads * dim;
    const float* const v = k + args.num_kv_heads * dim;
    for (int32_t h = 0; h < args.num_kv_heads; ++h) {
      for (int64_t d = 0; d < dim; ++d) {
        cached(keys_, args.layer, h, sequence, position)[d] = round_to(kv_.dtype, k[h * dim + d]);
        cached(values_, args.layer, h, sequence, position)[d] = round_to(kv_.dtype, v[h * dim + d]);
      }
    }
  });
}

void ReferenceDevice::rotate_and_store_latent(const LatentArgs& args) {
  const RopeSpec& rope = ropes_[static_cast<size_t>(args.rope)];
  const int64_t rotated = rope.rotary_dim;
  std::vector<float> cos_sin(static_cast<size_t>(rotated));
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    fill_cos_sin(rope, batch_->positions[static_cast<size_t>(row)], cos_sin.data());
    const double scale = query_scale(args.query_scale, batch_->positions[static_cast<size_t>(row)]);
    for (int64_t i = 0; i < args.q.cols; ++i) put(args.q, row, i, at(args.q, row, i) * scale);
    for (int64_t h = 0; h < args.num_heads; ++h) {
      float* const to =
          mutable_row_of(args.latent_q, row) + h * (args.latent_dim + rotated) + args.latent_dim;
      std::copy_n(row_of(args.q, row) + h * (args.kept_dim + rotated) + args.kept_dim, rotated, to);
      rotate_head(to, rope, cos_sin);
    }
    float* const key = mutable_row_of(args.key, row);
    rotate_head(key + args.latent_dim, rope, cos_sin);
    float* const to = cached(keys_, args.layer, 0, sequence, position);
    for (int64_t d = 0; d < kv_.head_dim; ++d) to[d] = round_to(kv_.dtype, key[d]);
  });
}

void ReferenceDevice::head_matmul(const HeadMatmulArgs& args) {
  for (size_t h = 0; h < args.heads.size(); ++h) {
    const auto head = static_cast<int64_t>(h);
    const Matrix& w = *args.heads[h];
    matmul({.x = args.x.columns(head * args.x_step, w.cols),
            .w = &w,
            .out = args.out.columns(head * args.out_step, w.rows)});
  }
}

void ReferenceDevice::attend(
    const AttentionArgs& args, size_t sequence, int32_t row, int64_t position, int32_t head) {
  const int32_t kv_head = head / (args.num_heads / args.num_kv_heads);
  const int64_t first =
      args.sliding_window == 0 ? 0 : std::max<int64_t>(0, position - args.sliding_window + 1);
  std::vector<double> weights;
  const double sink =
      args.sinks == nullptr ? -std::numeric_limits<double>::infinity() : at(*args.sinks, 0, head);
  double highest = sink;
  for (int64_t j = first; j <= position; ++j) {
    const float* k = cached(keys_, args.layer, kv_head, sequence, j);
    double score = 0.0;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      const float q = row_of(args.q, row)[head * args.head_dim + d];
      const bool rounds = kv_.dtype == DType::kBF16;
      score += double{rounds ? round_to(DType::kBF16, q) : q} * static_cast<double>(k[d]);
    }
    score = cap(score * static_cast<double>(args.scale), static_cast<double>(args.softcap));
    if (args.alibi_slopes != nullptr) {
      score += at(*args.alibi_slopes, 0, head) * static_cast<double>(j - position);
    }
    highest = std::max(highest, score);
    weights.push_back(score);
  }
  double total = std::exp(sink - highest);
  for (double& weight : weights) {
    weight = std::exp(weight - highest);
    total += weight;
  }
  std::vector<float>& values = args.latent_dim > 0 ? keys_ : values_;
  for (int64_t d = 0; d < args.value_dim(); ++d) {
    double sum = 0.0;
    for (int64_t j = first; j <= position; ++j) {
      sum += weights[static_cast<size_t>(j - first)] *
             static_cast<double>(cached(values, args.layer, kv_head, sequence, j)[d]);
    }
    put(args.out, row, head * args.value_dim() + d, sum / total);
  }
}

void ReferenceDevice::attention(const AttentionArgs& args) {
  for_tokens([&](size_t sequence, int32_t row, int64_t position) {
    for (int32_t head = 0; head < args.num_heads; ++head) {
      attend(args, sequence, row, position, head);
    }
  });
}

void ReferenceDevice::activation(const ActivationArgs& args) {
  for (int64_t row = 0; row < args.out.rows; ++row) {
    for (int64_t col = 0; col < args.out.cols; ++col) {
      const double gate = at(args.in, row, col);
      const double up = args.gated ? at(args.in, row, args.out.cols + col) : 1.0;
      put(args.out, row, col,
          args.limits.limit > 0.0F ? limited_silu(args.limits, gate, up)
                                   : activate(args.kind, gate) * up);
    }
  }
}

void ReferenceDevice::gather_logit_rows(const Tensor& x, const Tensor& out) {
  int64_t to = 0;
  const auto copy = [&](int32_t row) {
    std::copy_n(row_of(x, row), x.cols, mutable_row_of(out, to++));
  };
  for (const SampleRow& row : rows_.sample_rows) copy(row.row);
  for (const ScoreRow& row : rows_.score_rows) copy(row.row);
}

void ReferenceDevice::add(const AddArgs& args) {
  for (int64_t row = 0; row < args.out.rows; ++row) {
    for (int64_t col = 0; col < args.out.cols; ++col) {
      double y = at(args.y, row, col) * static_cast<double>(args.y_multiplier);
      if (args.y_gate != nullptr) y /= 1.0 + std::exp(-at(*args.y_gate, row, 0));
      put(args.out, row, col, args.x.data == nullptr ? y : at(args.x, row, col) + y);
    }
  }
}

void ReferenceDevice::sample(const SampleArgs& args) {
  const auto& head = static_cast<const PlainMatrix&>(*args.lm_head);
  const auto vocab_size = static_cast<int32_t>(head.rows);
  SamplerScratch scratch(vocab_size);
  std::vector<float> logits(static_cast<size_t>(vocab_size));
  const auto fill_logits = [&](size_t row) {
    const std::vector<double> x = head.rounded(row_of(args.hidden, static_cast<int64_t>(row)));
    for (int32_t id = 0; id < vocab_size; ++id) {
      const double bias = args.bias == nullptr ? 0.0 : at(*args.bias, 0, id);
      const double logit = dot(x, head, id) + bias;
      logits[static_cast<size_t>(id)] = static_cast<float>(cap(
          logit * static_cast<double>(args.logit_scale), static_cast<double>(args.logit_softcap)));
    }
  };
  const SamplerMath& math = plain_sampler_math();
  const size_t num_samples = rows_.sample_rows.size();
  for (size_t i = 0; i < num_samples; ++i) {
    fill_logits(i);
    const SampleRow& row = rows_.sample_rows[i];
    sample_row({.logits = logits.data(),
                .vocab_size = vocab_size,
                .params = &slots_->sampling(row.slot),
                .history = slots_->history(row.slot),
                .previous_id = slots_->last_token(row.slot),
                .position = row.position,
                .allowed = rows_.allowed(i)},
               math, scratch, result_.sampled[i]);
    slots_->record(row.slot, result_.sampled[i].token.id);
  }
  for (size_t i = 0; i < rows_.score_rows.size(); ++i) {
    fill_logits(num_samples + i);
    result_.scores[i] = score_row(logits.data(), vocab_size, rows_.score_rows[i], math, scratch,
                                  result_.score_tops[i]);
  }
}

}  // namespace tgi
