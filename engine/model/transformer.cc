#include "engine/model/transformer.h"

#include <algorithm>

namespace tgi {
namespace {

constexpr int64_t kAlignment = 64;

// Hands out consecutive tensors from a base address, which may be null to only count.
class Layout {
 public:
  Layout(void* base, DType dtype, int64_t rows, int64_t offset = 0)
      : base_(static_cast<std::byte*>(base)), dtype_(dtype), rows_(rows), offset_(offset) {}

  Tensor take(int64_t cols) {
    const Tensor tensor{base_ == nullptr ? nullptr : base_ + offset_, dtype_, rows_, cols, cols};
    const auto size = rows_ * cols * static_cast<int64_t>(dtype_size(dtype_));
    offset_ += (size + kAlignment - 1) / kAlignment * kAlignment;
    return tensor;
  }
  int64_t offset() const { return offset_; }

 private:
  std::byte* base_;
  DType dtype_;
  int64_t rows_;
  int64_t offset_;
};

}  // namespace

Transformer::Workspace Transformer::lay_out(
    const ModelConfig& config, DType dtype, int world_size, int32_t max_batch_tokens, void* base) {
  const int64_t q = int64_t{config.num_heads / world_size} * config.head_dim;
  const int64_t kv = int64_t{config.num_kv_heads / world_size} * config.head_dim;
  const int64_t intermediate = config.intermediate_size / world_size;
  Workspace out;
  Layout shared(base, dtype, max_batch_tokens);
  out.residual = shared.take(config.hidden_size);
  out.normed = shared.take(config.hidden_size);
  out.branch = shared.take(config.hidden_size);
  out.last_rows = shared.take(config.hidden_size);
  Layout attention(base, dtype, max_batch_tokens, shared.offset());
  out.qkv = attention.take(q + 2 * kv);
  out.attended = attention.take(q);
  Layout mlp(base, dtype, max_batch_tokens, shared.offset());
  out.gate_up = mlp.take(config.gated_mlp ? 2 * intermediate : intermediate);
  out.activated = mlp.take(intermediate);
  out.size_bytes = std::max(attention.offset(), mlp.offset());
  return out;
}

int64_t Transformer::workspace_bytes(const ModelConfig& config,
                                     const DeviceInfo& device,
                                     int world_size,
                                     int32_t max_batch_tokens) {
  return lay_out(config, device.activation_dtype, world_size, max_batch_tokens, nullptr).size_bytes;
}

Transformer::Transformer(const ModelConfig& config,
                         const ModelWeights& weights,
                         Device& device,
                         Communicator& communicator,
                         int32_t max_batch_tokens)
    : config_(config),
      weights_(weights),
      device_(device),
      communicator_(communicator),
      num_heads_(config.num_heads / communicator.world_size()),
      num_kv_heads_(config.num_kv_heads / communicator.world_size()) {
  const DType dtype = device.info().activation_dtype;
  const int64_t size =
      workspace_bytes(config, device.info(), communicator.world_size(), max_batch_tokens);
  memory_ = device.allocate(static_cast<size_t>(size), "activations");
  workspace_ = lay_out(config, dtype, communicator.world_size(), max_batch_tokens, memory_.data());
  if (config.rotary) rope_ = device.add_rope(config.rope);
}

NormArgs Transformer::norm_args(const DeviceVector& weight, const DeviceVector& bias) const {
  NormArgs args;
  args.kind = config_.norm_kind;
  args.eps = config_.norm_eps;
  args.weight_offset = config_.norm_weight_offset;
  args.weight = weight.get();
  args.bias = bias.get();
  return args;
}

void Transformer::run(int32_t num_tokens, int32_t num_logit_rows) {
  const Workspace& w = workspace_;
  const Tensor hidden = w.residual.first_rows(num_tokens);
  run_embedding(hidden);
  for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
    run_attention(layer, hidden, layer > 0);
    run_mlp(layer, hidden);
  }
  if (num_logit_rows == 0) return;

  // Only the rows whose logits are wanted go through the last norm and the head.
  const Tensor residual = w.normed.first_rows(num_logit_rows);
  const Tensor rows = w.last_rows.first_rows(num_logit_rows);
  device_.gather_logit_rows(hidden, residual);
  device_.gather_logit_rows(w.branch.first_rows(num_tokens), rows);
  NormArgs final_norm = norm_args(weights_.final_norm, weights_.final_norm_bias);
  final_norm.x = rows;
  final_norm.residual = residual;
  final_norm.out = rows;
  device_.norm(final_norm);
}

void Transformer::sample(int32_t num_logit_rows) {
  sample_rows(workspace_.last_rows.first_rows(num_logit_rows));
}

void Transformer::run_embedding(const Tensor& hidden) {
  device_.embed({.table = weights_.token_embedding.get(),
                 .position_table = weights_.position_embedding.get(),
                 .multiplier = config_.embedding_multiplier,
                 .out = hidden});
}

void Transformer::run_layer(int32_t layer, const Tensor& hidden) {
  run_attention(layer, hidden, false);
  run_mlp(layer, hidden);
  device_.add(hidden, workspace_.branch.first_rows(hidden.rows), hidden);
}

void Transformer::run_head(const Tensor& hidden) {
  const Tensor rows = workspace_.last_rows.first_rows(hidden.rows);
  NormArgs final_norm = norm_args(weights_.final_norm, weights_.final_norm_bias);
  final_norm.x = hidden;
  final_norm.out = rows;
  device_.norm(final_norm);
  sample_rows(rows);
}

void Transformer::sample_rows(const Tensor& rows) {
  device_.sample({.hidden = rows,
                  .lm_head = &weights_.lm_head(),
                  .bias = nullptr,
                  .logit_scale = config_.logit_scale,
                  .logit_softcap = config_.logit_softcap});
}

// residual += the branch before, if there is one; branch = attention(norm(residual))
void Transformer::run_attention(int32_t layer, const Tensor& residual, bool has_branch) {
  const Workspace& w = workspace_;
  const int64_t num_tokens = residual.rows;
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  const Tensor normed = w.normed.first_rows(num_tokens);
  const Tensor branch = w.branch.first_rows(num_tokens);
  const Tensor qkv = w.qkv.first_rows(num_tokens);
  const Tensor attended = w.attended.first_rows(num_tokens);

  NormArgs norm = norm_args(weights.attention_norm, weights.attention_norm_bias);
  norm.out = normed;
  norm.x = has_branch ? branch : residual;
  if (has_branch) norm.residual = residual;
  device_.norm(norm);
  weights.qkv.apply(device_, normed, qkv);
  device_.qk_norm_rope_store_kv({.layer = layer,
                                 .num_heads = num_heads_,
                                 .num_kv_heads = num_kv_heads_,
                                 .head_dim = config_.head_dim,
                                 .rope = rope_,
                                 .q_norm = weights.q_norm.get(),
                                 .k_norm = weights.k_norm.get(),
                                 .norm_eps = config_.norm_eps,
                                 .qkv = qkv});
  const bool uses_window =
      config_.layer_uses_window.empty() || config_.layer_uses_window[static_cast<size_t>(layer)];
  device_.attention({.layer = layer,
                     .num_heads = num_heads_,
                     .num_kv_heads = num_kv_heads_,
                     .head_dim = config_.head_dim,
                     .scale = config_.attention_scale,
                     .softcap = config_.attention_softcap,
                     .sliding_window = uses_window ? config_.sliding_window : 0,
                     .q = qkv.columns(0, int64_t{num_heads_} * config_.head_dim),
                     .out = attended});
  weights.o.apply(device_, attended, branch);
  communicator_.all_reduce_sum(branch);
}

// residual += the branch before; branch = mlp(norm(residual))
void Transformer::run_mlp(int32_t layer, const Tensor& residual) {
  const Workspace& w = workspace_;
  const int64_t num_tokens = residual.rows;
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  const Tensor normed = w.normed.first_rows(num_tokens);
  const Tensor branch = w.branch.first_rows(num_tokens);
  const Tensor gate_up = w.gate_up.first_rows(num_tokens);
  const Tensor activated = w.activated.first_rows(num_tokens);

  NormArgs norm = norm_args(weights.mlp_norm, weights.mlp_norm_bias);
  norm.x = branch;
  norm.residual = residual;
  norm.out = normed;
  device_.norm(norm);
  weights.gate_up.apply(device_, normed, gate_up);
  device_.activation(
      {.kind = config_.activation, .gated = config_.gated_mlp, .in = gate_up, .out = activated});
  weights.down.apply(device_, activated, branch);
  communicator_.all_reduce_sum(branch);
}

}  // namespace tgi
