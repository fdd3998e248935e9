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
#include "engine/cpu/reference_values.h"
#include "engine/tensor/half.h"

namespace tgi {
namespace {

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
    case Activation::kXielu:  // below
      break;
  }
  return x;
}

double xielu(const XieluNumbers& numbers, double x) {
  const double line = static_cast<double>(numbers.beta) * x;
  if (x > 0.0) return static_cast<double>(numbers.alpha_p) * x * x + line;
  const double held = std::min(x, static_cast<double>(numbers.eps));
  return static_cast<double>(numbers.alpha_n) * (std::expm1(held) - x) + line;
}

// What is not a number stays so.
double limited_silu(const GateLimits& limits, double gate, double up) {
  const auto limit = static_cast<double>(limits.limit);
  const auto up_limit = static_cast<double>(limits.up_limit);
  if (gate > limit) gate = limit;
  up = std::clamp(up, -up_limit, up_limit);
  return gate * sigmoid(static_cast<double>(limits.slope) * gate) *
         (up + static_cast<double>(limits.up_offset));
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
           .activation_dtype = DType::kF32,
           .keeps = {.integer_heads = true},
           .takes_adapters = true,
           .takes_encoders = true,
           .chooses_tokens = true,
           .compresses_tokens = true,
           .reports_rows = true};
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

// Of a row of either cache: a key or a value.
static int64_t row_numbers(const KvHeads& heads) {
  return std::max(heads.head_dim, heads.value_cols());
}

// Numbers of one block in either cache, where layers differ.
static int64_t block_numbers(const KvLayout& layout) {
  int64_t most = 0;
  for (const std::vector<KvHeads>& group : layout.groups) {
    int64_t count = 0;
    for (const KvHeads& heads : group) {
      count += layout.block_size * heads.num_kv_heads * row_numbers(heads);
    }
    most = std::max(most, count);
  }
  return most;
}

int64_t ReferenceDevice::kv_bytes(const KvLayout& layout) const {
  if (!layout.groups.empty()) {
    return 2 * layout.num_blocks * block_numbers(layout) * int64_t{sizeof(float)};
  }
  return int64_t{layout.latent_dim > 0 ? 1 : 2} * layout.num_layers * layout.num_blocks *
         layout.num_kv_heads * layout.block_size * layout.head_dim * int64_t{sizeof(float)};
}

int64_t ReferenceDevice::slot_bytes(const SlotLayout& layout) const {
  return SlotTable::bytes(layout) + SamplerScratch::bytes(layout.vocab_size) +
         int64_t{layout.vocab_size} * int64_t{sizeof(float)} +
         2 * state_bytes(layout.state, layout.num_slots) +
         int64_t{layout.max_batch_tokens} * layout.reported_cols * int64_t{sizeof(float)};
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
  reported_cols_ = slots.reported_cols;
  adapters_.assign(static_cast<size_t>(slots.max_adapters) + 1, nullptr);
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
  result_.pooled.resize(batch.pooled_rows.size());
  result_.reported.resize(batch.reports_rows ? static_cast<size_t>(batch.num_tokens()) *
                                                   static_cast<size_t>(reported_cols_)
                                             : 0);
  rows_.begin(batch);
  slot_of_row_.clear();
  for_tokens(
      [&](size_t sequence, int32_t, int64_t) { slot_of_row_.push_back(batch.slots[sequence]); });
  forward_ = &forward;
  forward.run(batch.num_tokens(), batch.num_output_rows());
  batch_ = nullptr;
  return step_;
}

void ReferenceDevice::sample(Ticket ticket, const TokenMasks& masks) {
  TGI_CHECK(ticket == step_);
  rows_.sample(masks, vocab_size_);
  if (rows_.num_output_rows() > 0) forward_->sample(rows_.num_output_rows());
  rows_.visit_accepted(result_.sampled,
                       [this](int32_t slot, int32_t id) { slots_->record(slot, id); });
}

const StepResult& ReferenceDevice::wait(Ticket ticket) {
  TGI_CHECK(ticket == step_ && !rows_.is_open());
  return result_;
}

float* ReferenceDevice::cached(std::vector<float>& cache,
                               KvPlace place,
                               int32_t kv_head,
                               size_t sequence,
                               int64_t position) const {
  const int32_t* const blocks = slots_->block_table(batch_->slots[sequence], place.group);
  const int64_t block = blocks[position / kv_.block_size];
  const int64_t in_block = position % kv_.block_size;
  if (!kv_.groups.empty()) {
    const std::vector<KvHeads>& group = kv_.groups[static_cast<size_t>(place.group)];
    int64_t before = block * block_numbers(kv_);
    for (int32_t i = 0; i < place.layer; ++i) {
      const KvHeads& heads = group[static_cast<size_t>(i)];
      before += kv_.block_size * heads.num_kv_heads * row_numbers(heads);
    }
    const int64_t cols = row_numbers(group[static_cast<size_t>(place.layer)]);
    return cache.data() + before + (int64_t{kv_head} * kv_.block_size + in_block) * cols;
  }
  const int64_t index =
      (((int64_t{place.layer} * kv_.num_blocks + block) * kv_.num_kv_heads + kv_head) *
           kv_.block_size +
       in_block) *
      kv_.head_dim;
  return cache.data() + index;
}

void ReferenceDevice::embed(const EmbedArgs& args) {
  const auto* table = static_cast<const PlainMatrix*>(args.table);
  const auto* positions = static_cast<const PlainMatrix*>(args.position_table);
  const auto* types = static_cast<const PlainMatrix*>(args.type_table);
  for (int64_t row = 0; row < args.out.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    const int32_t id = slots_->resolve(batch_->token_ids[i]);
    const int32_t type = batch_->token_types.empty() ? 0 : batch_->token_types[i];
    for (int64_t col = 0; col < args.out.cols; ++col) {
      const auto multiplier = static_cast<double>(args.multiplier);
      double value = table == nullptr ? at(args.out, row, col)
                                      : table->at(id < table->rows ? id : 0, col) * multiplier;
      if (positions != nullptr) value += positions->at(batch_->positions[i], col);
      if (types != nullptr) value += types->at(type, col);
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

void ReferenceDevice::activation(const ActivationArgs& args) {
  for (int64_t row = 0; row < args.out.rows; ++row) {
    for (int64_t col = 0; col < args.out.cols; ++col) {
      const double gate = at(args.in, row, col);
      if (args.kind == Activation::kXielu) {
        put(args.out, row, col, xielu(args.xielu, gate));
        continue;
      }
      const double up = args.gated ? at(args.in, row, args.out.cols + col) : 1.0;
      put(args.out, row, col,
          args.limits.limit > 0.0F ? limited_silu(args.limits, gate, up)
                                   : activate(args.kind, gate) * up);
    }
  }
}

void ReferenceDevice::gather_output_rows(const Tensor& x, const Tensor& out) {
  int64_t to = 0;
  rows_.visit_output_rows(
      [&](int32_t row) { std::copy_n(row_of(x, row), x.cols, mutable_row_of(out, to++)); });
}

void ReferenceDevice::add(const AddArgs& args) {
  for (int64_t row = 0; row < args.out.rows; ++row) {
    for (int64_t col = 0; col < args.out.cols; ++col) {
      double y = at(args.y, row, col) * static_cast<double>(args.y_multiplier);
      if (args.y_gate != nullptr) y *= sigmoid(at(*args.y_gate, row, 0));
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
      logits[static_cast<size_t>(id)] = static_cast<float>(dot(x, head, id) + bias);
    }
    if (args.site >= 0) {
      add_low_rank_to_row(adapter_of_output(row), args.site,
                          row_of(args.hidden, static_cast<int64_t>(row)), logits.data());
    }
    for (float& logit : logits) {
      logit =
          static_cast<float>(cap(static_cast<double>(logit) * static_cast<double>(args.logit_scale),
                                 static_cast<double>(args.logit_softcap)));
    }
  };
  const SamplerMath& math = plain_sampler_math();
  const size_t num_samples = rows_.sample_rows.size();
  for (size_t i = 0; i < num_samples; ++i) {
    fill_logits(i);
    const SampleRow& row = rows_.sample_rows[i];
    const std::span<const int32_t> drafts = rows_.drafts(i);
    sample_row({.logits = logits.data(),
                .vocab_size = vocab_size,
                .params = &slots_->sampling(row.slot),
                .history = slots_->history(row.slot),
                .drafts = drafts,
                .previous_id = drafts.empty() ? slots_->last_token(row.slot) : drafts.back(),
                .position = row.position,
                .allowed = rows_.allowed(i),
                .draw_ids = args.draw_ids},
               math, scratch, result_.sampled[i]);
  }
  for (size_t i = 0; i < rows_.score_rows.size(); ++i) {
    fill_logits(num_samples + i);
    result_.scores[i] = score_row(logits.data(), vocab_size, rows_.score_rows[i], math, scratch,
                                  result_.score_tops[i]);
  }
}

void ReferenceDevice::report_rows(const ReportArgs& args) {
  if (!batch_->reports_rows) return;
  for (int64_t row = 0; row < args.x.rows; ++row) {
    for (int64_t col = 0; col < args.x.cols; ++col) {
      result_.reported[static_cast<size_t>(row * reported_cols_ + args.first_col + col)] =
          static_cast<float>(at(args.x, row, col));
    }
  }
}

void ReferenceDevice::pool(const PoolArgs& args) {
  for (size_t i = 0; i < rows_.pooled_rows.size(); ++i) {
    const PooledRows& rows = rows_.pooled_rows[i];
    const bool keeps_rows = rows.pooling == Pooling::kRows;
    std::vector<float>& out = result_.pooled[i];
    out.clear();
    for (int64_t row = 0; row < (keeps_rows ? rows.num_rows : 1); ++row) {
      for (int64_t col = 0; col < args.hidden.cols; ++col) {
        double value = at(args.hidden, rows.row + row, col);
        if (rows.pooling == Pooling::kWeightedSum) value *= rows.position + 1.0;
        for (int32_t k = 1; k < rows.num_rows && !keeps_rows; ++k) {
          const double other = at(args.hidden, rows.row + k, col);
          if (rows.pooling == Pooling::kMax) {
            value = std::max(value, other);
          } else {
            value += other * (rows.pooling == Pooling::kSum ? 1.0 : rows.position + k + 1.0);
          }
        }
        out.push_back(static_cast<float>(value));
      }
    }
  }
}

}  // namespace tgi
