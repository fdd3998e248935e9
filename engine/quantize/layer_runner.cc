#include "engine/quantize/layer_runner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/parallel.h"
#include "engine/model/state_layout.h"
#include "engine/tensor/dense_weight.h"

namespace tgi {
namespace {

constexpr int32_t kBlockSize = 16;
constexpr int64_t kStepTokens = 1024;  // sequences are run together up to this many
constexpr int32_t kLogitRows = 64;

int32_t num_blocks(size_t num_tokens) {
  return static_cast<int32_t>((num_tokens + kBlockSize - 1) / kBlockSize);
}

double log_sum_exp(const float* logits, int64_t count) {
  double highest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < count; ++i) highest = std::max(highest, double{logits[i]});
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += std::exp(double{logits[i]} - highest);
  return highest + std::log(sum);
}

}  // namespace

// What is run in a step.
class LayerRunner::Piece final : public Forward {
 public:
  explicit Piece(const std::function<void()>& run) : run_(run) {}
  void run(int32_t /*num_tokens*/, int32_t /*num_logit_rows*/) override { run_(); }

 private:
  const std::function<void()>& run_;
};

LayerRunner::LayerRunner(const LoadedConfig& model,
                         const Checkpoint& checkpoint,
                         Device& device,
                         const std::vector<std::vector<int32_t>>& sequences,
                         std::stop_token stop)
    : model_(model),
      sequences_(sequences),
      stop_(std::move(stop)),
      device_(device, kLogitRows),
      loader_(model, checkpoint, device_, {.dtype = DType::kF32}) {
  weights_.layers.resize(static_cast<size_t>(model.config.num_layers));
  plan_steps();
  transformer_ = std::make_unique<Transformer>(model.config, weights_, device_, communicator_,
                                               one_kv_group(model.config), max_step_tokens_);
  const auto width = static_cast<size_t>(model.config.hidden_size);
  hidden_ = device_.allocate(static_cast<size_t>(max_step_tokens_) * width * sizeof(float),
                             "hidden states");
}

void LayerRunner::plan_steps() {
  int32_t most_blocks = 0;
  int32_t most_blocks_per_slot = 0;
  size_t most_sequences = 0;
  for (size_t i = 0; i < sequences_.size();) {
    Step step{.first = i, .count = 0, .first_row = num_tokens_, .num_rows = 0};
    int32_t blocks = 0;
    while (i < sequences_.size()) {
      const auto length = static_cast<int64_t>(sequences_[i].size());
      if (step.count > 0 && step.num_rows + length > kStepTokens) break;
      step.num_rows += length;
      ++step.count;
      blocks += num_blocks(sequences_[i].size());
      most_blocks_per_slot = std::max(most_blocks_per_slot, num_blocks(sequences_[i].size()));
      ++i;
    }
    num_tokens_ += step.num_rows;
    most_blocks = std::max(most_blocks, blocks);
    most_sequences = std::max(most_sequences, step.count);
    max_step_tokens_ = std::max(max_step_tokens_, static_cast<int32_t>(step.num_rows));
    steps_.push_back(step);
  }
  max_step_tokens_ = std::max(max_step_tokens_, kLogitRows);
  allocate_state(device_, model_.config, one_kv_group(model_.config),
                 {.num_blocks = most_blocks,
                  .block_size = kBlockSize,
                  .kv_dtype = DType::kF32,
                  .num_slots = static_cast<int32_t>(most_sequences),
                  .max_blocks_per_slot = most_blocks_per_slot,
                  .max_batch_tokens = max_step_tokens_});
}

const Batch& LayerRunner::batch_of(const Step& step) {
  batch_.clear();
  int32_t block = 0;
  for (size_t i = 0; i < step.count; ++i) {
    const std::vector<int32_t>& ids = sequences_[step.first + i];
    const auto slot = static_cast<int32_t>(i);
    const auto length = static_cast<int32_t>(ids.size());
    batch_.slot_starts.push_back(
        {.slot = slot, .sampling = {}, .token_ids = ids, .num_prompt_tokens = length});
    for (int32_t index = 0; index < num_blocks(ids.size()); ++index) {
      batch_.block_appends.push_back({.slot = slot, .index = index, .block = block++});
    }
    for (int32_t position = 0; position < length; ++position) {
      batch_.token_ids.push_back(ids[static_cast<size_t>(position)]);
      batch_.positions.push_back(position);
    }
    batch_.slots.push_back(slot);
    batch_.cu_seqlens_q.push_back(batch_.num_tokens());
    batch_.context_lens.push_back(length);
  }
  return batch_;
}

void LayerRunner::check_stop() const {
  if (stop_.stop_requested()) throw Error(Code::kCancelled, "the job was cancelled");
}

// Each step's states go to the device, and back where there are any to go to.
void LayerRunner::for_steps(const std::function<void(const Tensor& hidden)>& run,
                            HiddenStates* states) {
  const int64_t width = model_.config.hidden_size;
  for (const Step& step : steps_) {
    check_stop();
    const Tensor hidden{hidden_.data(), DType::kF32, step.num_rows, width, width};
    const auto size = static_cast<size_t>(step.num_rows * width) * sizeof(float);
    float* at = states->values.data() + step.first_row * width;
    const std::function<void()> work = [&] {
      device_.copy_to_device(hidden.data, at, size);
      run(hidden);
      device_.copy_to_host(at, hidden.data, size);
    };
    Piece piece(work);
    (void)run_step(device_, batch_of(step), piece);
  }
}

LayerRunner::HiddenStates LayerRunner::embed() {
  ModelWeights outer = loader_.load_outer();
  weights_.token_embedding = std::move(outer.token_embedding);
  weights_.position_embedding = std::move(outer.position_embedding);
  weights_.type_embedding = std::move(outer.type_embedding);
  weights_.embedding_norm = std::move(outer.embedding_norm);
  weights_.embedding_norm_bias = std::move(outer.embedding_norm_bias);
  weights_.embedding_in = std::move(outer.embedding_in);
  HiddenStates states(num_tokens_, model_.config.hidden_size);
  for_steps([&](const Tensor& hidden) { transformer_->run_embedding(hidden); }, &states);
  weights_.token_embedding.reset();
  weights_.position_embedding.reset();
  weights_.type_embedding.reset();
  weights_.embedding_in = {};
  return states;
}

LayerWeights& LayerRunner::load_layer(int32_t layer) {
  check_stop();
  if (loaded_layer_ >= 0) weights_.layers[static_cast<size_t>(loaded_layer_)] = {};
  LayerWeights& out = weights_.layers[static_cast<size_t>(layer)];
  out = loader_.load_layer(layer);
  loaded_layer_ = layer;
  return out;
}

void LayerRunner::run_layer(int32_t layer, HiddenStates& states) {
  TGI_CHECK(layer == loaded_layer_);
  for_steps([&](const Tensor& hidden) { transformer_->run_layer(layer, hidden); }, &states);
}

void LayerRunner::see_inputs(int32_t layer, const HiddenStates& states, std::vector<Tap> taps) {
  TGI_CHECK(layer == loaded_layer_);
  for (size_t i = 0; i < taps.size(); ++i) {
    device_.tap(taps[i].w, std::move(taps[i].see), i + 1 == taps.size());
  }
  const int64_t width = model_.config.hidden_size;
  for (const Step& step : steps_) {
    check_stop();
    const Tensor hidden{hidden_.data(), DType::kF32, step.num_rows, width, width};
    const std::function<void()> work = [&] {
      device_.copy_to_device(hidden.data, states.values.data() + step.first_row * width,
                             static_cast<size_t>(step.num_rows * width) * sizeof(float));
      transformer_->run_layer(layer, hidden);
    };
    Piece piece(work);
    (void)run_step(device_, batch_of(step), piece);
  }
  device_.clear_taps();
}

// Rows don't know of their sequences here: a step without tokens serves.
void LayerRunner::see_logits(const HiddenStates& states,
                             int64_t first,
                             int64_t count,
                             TapDevice::See see) {
  const int64_t width = model_.config.hidden_size;
  const Tensor hidden{hidden_.data(), DType::kF32, count, width, width};
  device_.tap_logits(std::move(see));
  const std::function<void()> work = [&] {
    device_.copy_to_device(hidden.data, states.values.data() + first * width,
                           static_cast<size_t>(count * width) * sizeof(float));
    transformer_->run_head(hidden);
  };
  Piece piece(work);
  batch_.clear();
  (void)run_step(device_, batch_, piece);
  device_.clear_taps();
}

Fidelity LayerRunner::compare(const HiddenStates& source,
                              const HiddenStates& changed,
                              int num_threads) {
  return compare_runs(*this, source, *this, changed, num_threads);
}

// In place of the layers.
void LayerRunner::load_head() {
  weights_.layers[static_cast<size_t>(std::max(loaded_layer_, 0))] = {};
  loaded_layer_ = -1;
  {
    ModelWeights outer = loader_.load_outer();
    outer.layers = std::move(weights_.layers);
    weights_ = std::move(outer);
  }
}

Fidelity compare_runs(LayerRunner& source,
                      const LayerRunner::HiddenStates& source_states,
                      LayerRunner& changed,
                      const LayerRunner::HiddenStates& changed_states,
                      int num_threads) {
  source.load_head();
  if (&changed != &source) changed.load_head();
  const int64_t num_tokens = source.num_tokens();
  std::vector<int32_t> next_ids;  // (num_tokens); -1 at the end of a sequence
  for (const std::vector<int32_t>& ids : source.sequences_) {
    next_ids.insert(next_ids.end(), ids.begin() + 1, ids.end());
    next_ids.push_back(-1);
  }
  struct Sums {
    double source_loss = 0;
    double changed_loss = 0;
    double kl = 0;
    bool agrees = false;
  };
  std::vector<Sums> sums(static_cast<size_t>(num_tokens));
  std::vector<float> source_logits;
  for (int64_t first = 0; first < num_tokens; first += kLogitRows) {
    source.check_stop();
    const int64_t count = std::min<int64_t>(kLogitRows, num_tokens - first);
    source.see_logits(source_states, first, count, [&](const Tensor& logits) {
      const auto* values = logits.as<const float>();
      source_logits.assign(values, values + logits.rows * logits.cols);
    });
    changed.see_logits(changed_states, first, count, [&](const Tensor& logits) {
      parallel_for(num_threads, count, [&](int64_t row) {
        const int64_t size = logits.cols;
        const float* p = source_logits.data() + row * size;
        const float* q = logits.as<const float>() + row * size;
        const double p_total = log_sum_exp(p, size);
        const double q_total = log_sum_exp(q, size);
        const auto at = static_cast<size_t>(first + row);
        Sums& sum = sums[at];
        for (int64_t i = 0; i < size; ++i) {
          const double log_p = double{p[i]} - p_total;
          sum.kl += std::exp(log_p) * (log_p - (double{q[i]} - q_total));
        }
        sum.agrees = std::max_element(p, p + size) - p == std::max_element(q, q + size) - q;
        if (next_ids[at] < 0) return;
        sum.source_loss = p_total - double{p[next_ids[at]]};
        sum.changed_loss = q_total - double{q[next_ids[at]]};
      });
    });
  }
  Fidelity out;
  Sums total;
  for (size_t i = 0; i < sums.size(); ++i) {
    total.kl += sums[i].kl;
    out.top_token_agreement += sums[i].agrees ? 1.0 : 0.0;
    if (next_ids[i] < 0) continue;
    ++out.num_tokens;
    total.source_loss += sums[i].source_loss;
    total.changed_loss += sums[i].changed_loss;
  }
  const auto rows = static_cast<double>(num_tokens);
  const auto targets = static_cast<double>(std::max<int64_t>(1, out.num_tokens));
  out.source_perplexity = std::exp(total.source_loss / targets);
  out.changed_perplexity = std::exp(total.changed_loss / targets);
  out.mean_kl = total.kl / rows;
  out.top_token_agreement /= rows;
  return out;
}

std::unique_ptr<Matrix> LayerRunner::make_matrix(std::span<const FloatMatrix* const> pieces) {
  std::vector<HostWeight> weights;
  for (const FloatMatrix* piece : pieces) {
    weights.push_back(
        dense_weight("quantised", piece->values.data(), piece->rows, piece->cols, piece->cols));
  }
  return device_.make_matrix(weights, DType::kF32);
}

}  // namespace tgi
