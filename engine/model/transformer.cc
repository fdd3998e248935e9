#include "engine/model/transformer.h"

#include <algorithm>

namespace tgi {
namespace {

// By layer: how many before it have the trait.
std::vector<int32_t> count_before(const ModelConfig& config, bool LayerPlan::*trait) {
  std::vector<int32_t> out;
  int32_t count = 0;
  for (const LayerPlan& plan : config.layers) {
    out.push_back(count);
    if (plan.*trait) ++count;
  }
  return out;
}

}  // namespace

Transformer::Transformer(const ModelConfig& config,
                         const ModelWeights& weights,
                         Device& device,
                         Communicator& communicator,
                         const KvPlan& kv_plan,
                         int32_t max_batch_tokens)
    : config_(config),
      weights_(weights),
      device_(device),
      communicator_(communicator),
      num_heads_(config.num_heads / communicator.world_size()),
      kv_places_(kv_plan.places),
      indexer_places_(kv_plan.indexer_places),
      entry_places_(kv_plan.entry_places),
      indexer_entry_places_(kv_plan.indexer_entry_places),
      state_index_(count_before(config, &LayerPlan::has_state)) {
  const DType dtype = device.info().activation_dtype;
  const int64_t size =
      workspace_bytes(config, device.info(), communicator.world_size(), max_batch_tokens);
  memory_ = device.allocate(static_cast<size_t>(size), "activations");
  workspace_ = lay_out(config, dtype, communicator.world_size(), max_batch_tokens, memory_.data());
  for (RopeSpec rope : config.ropes) {
    for (size_t i = 0; i < weights.rope_scales.size(); ++i) {
      rope.inv_freq[i] *= weights.rope_scales[i];
    }
    ropes_.push_back(device.add_rope(rope));
  }
  copy_constants();
  if (config.distances.has_products()) make_distances();
}

void Transformer::copy_constants() {
  const auto copy = [this](const Tensor& to, const float* from) {
    const auto size = static_cast<size_t>(to.cols) * sizeof(float);
    device_.copy_to_device(to.data, from, size);
  };
  const std::vector<float> ones(static_cast<size_t>(workspace_.ones.cols), 1.0F);
  if (!ones.empty()) copy(workspace_.ones, ones.data());
  if (config_.alibi_slopes.empty()) return;
  copy(workspace_.slopes, config_.alibi_slopes.data() + communicator_.rank() * num_heads_);
}

bool Transformer::has_norm(const DeviceVector& weight) const {
  return weight.get() != nullptr || !config_.norms_have_weights;
}

NormArgs Transformer::norm_args(const DeviceVector& weight, const DeviceVector& bias) const {
  NormArgs args;
  args.kind = config_.norm_kind;
  args.eps = config_.norm_eps;
  args.weight = weight.get() != nullptr ? weight.get() : &workspace_.ones;
  args.bias = bias.get();
  return args;
}

void Transformer::run(int32_t num_tokens, int32_t num_output_rows) {
  const Workspace& w = workspace_;
  const Tensor hidden = (has_streams(config_) ? w.streams : w.residual).first_rows(num_tokens);
  Stream stream = stream_at(hidden);
  run_embedding(hidden);
  for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
    report_before(layer, stream);
    run_layer_on(layer, stream);
  }
  report_last(stream);
  if (num_output_rows == 0) return;
  if (config_.streams.connects) join_connected(hidden, stream.sum);

  // Only the rows that are wanted go through the last norm and the head.
  const Tensor residual = w.normed.first_rows(num_output_rows);
  const Tensor rows = w.last_rows.first_rows(num_output_rows);
  NormArgs final_norm = norm_args(weights_.final_norm, weights_.final_norm_bias);
  final_norm.x = rows;
  if (num_further_streams(config_) > 0) {
    join_streams(hidden, true, rows);
  } else if (stream.has_branch) {
    device_.gather_output_rows(stream.sum, residual);
    device_.gather_output_rows(stream.branch, rows);
    final_norm.residual = residual;
  } else {
    device_.gather_output_rows(stream.sum, rows);
  }
  final_norm.x_multiplier = config_.residual_multiplier;
  final_norm.out = rows;
  device_.norm(final_norm);
}

void Transformer::report_before(int32_t layer, Stream& stream) {
  const std::vector<int32_t>& layers = reported_.before_layers;
  const auto found = std::ranges::find(layers, layer);
  if (found == layers.end()) return;
  add_branch(stream);
  device_.report_rows(
      {.x = stream.sum, .first_col = (found - layers.begin()) * int64_t{config_.hidden_size}});
}

void Transformer::report_last(Stream& stream) {
  if (!reported_.after_last_norm) return;
  add_branch(stream);
  NormArgs norm = norm_args(weights_.final_norm, weights_.final_norm_bias);
  norm.x = stream.sum;
  norm.out = workspace_.normed.first_rows(stream.sum.rows);
  device_.norm(norm);
  device_.report_rows(
      {.x = norm.out,
       .first_col = static_cast<int64_t>(reported_.before_layers.size()) * config_.hidden_size});
}

void Transformer::sample(int32_t num_output_rows) {
  const Tensor rows = workspace_.last_rows.first_rows(num_output_rows);
  if (config_.gives_vectors) {
    device_.pool({.hidden = rows});
  } else {
    if (reports_hidden_) device_.pool({.hidden = rows});
    sample_rows(rows);
  }
}

void Transformer::add_to_embedding(const Tensor& embedded) {
  if (weights_.embedding_site < 0) return;
  device_.add_low_rank_of_tokens({.site = weights_.embedding_site, .out = embedded});
}

void Transformer::run_embedding(const Tensor& hidden) {
  if (!has_streams(config_)) return embed_tokens(hidden);
  embed_tokens(stream_of(hidden, 0));
  num_further_streams(config_) > 0 ? make_streams(hidden) : copy_to_streams(hidden);
}

void Transformer::embed_tokens(const Tensor& hidden) {
  const bool projects_last =
      weights_.embedding_in.weight != nullptr && config_.projects_embedding_last;
  if (weights_.embedding_in.weight == nullptr || projects_last) {
    const Tensor embedded = projects_last ? workspace_.embedded.first_rows(hidden.rows) : hidden;
    device_.embed({.table = weights_.token_embedding.get(),
                   .position_table = weights_.position_embedding.get(),
                   .type_table = weights_.type_embedding.get(),
                   .multiplier = config_.embedding_multiplier,
                   .out = embedded});
    add_to_embedding(embedded);
    if (projects_last) {
      norm_embedding(embedded);
      weights_.embedding_in.apply(device_, embedded, hidden);
      return;
    }
  } else {
    const Tensor embedded = workspace_.embedded.first_rows(hidden.rows);
    device_.embed({.table = weights_.token_embedding.get(),
                   .multiplier = config_.embedding_multiplier,
                   .out = embedded});
    add_to_embedding(embedded);
    weights_.embedding_in.apply(device_, embedded, hidden);
    if (weights_.position_embedding != nullptr) {
      device_.embed({.position_table = weights_.position_embedding.get(), .out = hidden});
    }
  }
  if (weights_.layer_input_table != nullptr) embed_layer_inputs(hidden);
  norm_embedding(hidden);
}

void Transformer::norm_embedding(const Tensor& embedded) {
  if (weights_.embedding_norm.get() == nullptr && !config_.norms_embedding) return;
  NormArgs norm = norm_args(weights_.embedding_norm, weights_.embedding_norm_bias);
  norm.x = embedded;
  norm.out = embedded;
  device_.norm(norm);
}

void Transformer::run_layer(int32_t layer, const Tensor& hidden) {
  Stream stream = stream_at(hidden);
  run_layer_on(layer, stream);
  add_branch(stream);
}

void Transformer::run_layer_beside(int32_t layer, const Tensor& x, const Tensor& hidden) {
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  Stream stream = stream_at(hidden);
  run_mixers(layer, weights, x, stream.branch);
  write(stream, weights.attention_post_norm);
  run_mlp_branch(layer, weights, stream);
  add_branch(stream);
}

void Transformer::run_head(const Tensor& hidden) {
  const Tensor rows = workspace_.last_rows.first_rows(hidden.rows);
  NormArgs final_norm = norm_args(weights_.final_norm, weights_.final_norm_bias);
  final_norm.x = rows;
  if (config_.streams.connects) {
    join_connected(hidden, rows);
  } else if (num_further_streams(config_) > 0) {
    join_streams(hidden, false, rows);
  } else {
    final_norm.x = stream_at(hidden).sum;
  }
  final_norm.out = rows;
  device_.norm(final_norm);
  sample_rows(rows);
}

// Its rows take the place of those that it reads.
void Transformer::run_head_dense(const Tensor& rows) {
  const Tensor made = workspace_.normed.first_rows(rows.rows);
  weights_.head_dense.apply_to_output_rows(device_, rows, made);
  device_.activation({.kind = config_.head_activation, .gated = false, .in = made, .out = rows});
  NormArgs norm = norm_args(weights_.head_norm, weights_.head_norm_bias);
  norm.x = rows;
  norm.out = rows;
  device_.norm(norm);
}

void Transformer::sample_rows(const Tensor& normed) {
  Tensor rows = normed;
  if (weights_.head_dense.weight != nullptr) run_head_dense(rows);
  if (weights_.head_in.weight != nullptr) {
    rows = workspace_.embedded.first_rows(normed.rows);
    weights_.head_in.apply_to_output_rows(device_, normed, rows);
  }
  device_.sample({.hidden = rows,
                  .lm_head = &weights_.lm_head(),
                  .bias = weights_.lm_head_bias.get(),
                  .logit_scale = config_.logit_scale,
                  .logit_softcap = config_.logit_softcap,
                  .site = weights_.head_site});
}

Transformer::Stream Transformer::stream_at(const Tensor& hidden) const {
  const Tensor branch = workspace_.branch.first_rows(hidden.rows);
  if (!has_streams(config_)) return {.sum = hidden, .branch = branch};
  if (config_.streams.keeps_embedding)
    return {.sum = stream_of(hidden, 0), .branch = branch, .all = hidden};
  return {.sum = workspace_.residual.first_rows(hidden.rows), .branch = branch, .all = hidden};
}

void Transformer::add_branch(Stream& stream) {
  if (stream.has_branch) {
    device_.add({.x = stream.sum,
                 .y = stream.branch,
                 .y_multiplier = config_.residual_multiplier,
                 .out = stream.sum});
  }
  stream.has_branch = false;
}

Tensor Transformer::read(Stream& stream,
                         const DeviceVector& norm_weight,
                         const DeviceVector& norm_bias) {
  if (!has_norm(norm_weight)) {
    add_branch(stream);
    return stream.sum;
  }
  NormArgs norm = norm_args(norm_weight, norm_bias);
  norm.x = stream.has_branch ? stream.branch : stream.sum;
  if (stream.has_branch) norm.residual = stream.sum;
  norm.x_multiplier = config_.residual_multiplier;
  // Where the stream goes on from the norm, that takes the sum's place.
  const Tensor& out = config_.residual_after_norm ? stream.sum : workspace_.normed;
  norm.out = out.first_rows(stream.sum.rows);
  device_.norm(norm);
  stream.has_branch = false;
  return norm.out;
}

void Transformer::write(Stream& stream, const DeviceVector& post_norm) {
  communicator_.all_reduce_sum(stream.branch);
  write_whole(stream, post_norm);
}

void Transformer::multiply_parts(const ResidualFactors& factors, Stream& stream) {
  multiply(stream.sum, factors.stream);
  multiply(stream.branch, factors.branch);
}

void Transformer::write_whole(Stream& stream, const DeviceVector& post_norm) {
  stream.has_branch = true;
  if (post_norm.get() == nullptr) return;
  NormArgs norm = norm_args(post_norm, {});
  if (config_.post_norm_eps > 0.0F) norm.eps = config_.post_norm_eps;
  norm.x = stream.branch;
  norm.out = stream.branch;
  device_.norm(norm);
}

void Transformer::run_layer_on(int32_t layer, Stream& stream) {
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  const bool has_further = num_further_streams(config_) > 0;
  if (config_.streams.connects) return run_connected_branches(layer, weights, stream);
  if (has_further) predict_streams(weights, stream);
  if (config_.parallel_branches) {
    run_branches_at_once(weights, layer, stream);
  } else {
    run_branches(layer, weights, stream);
  }
  if (has_further) correct_streams(weights, stream);
  if (weights.layer_input_gate.weight != nullptr) add_layer_input(layer, weights, stream);
  if (has_further) add_to_further_streams(stream);
  scale_stream(weights, stream);
}

void Transformer::run_branches(int32_t layer, const LayerWeights& weights, Stream& stream) {
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  if (plan.has_block()) return run_fed_state(layer, weights, stream);
  if (plan.has_attention || plan.has_state) {
    const Tensor x = read(stream, weights.attention_norm, weights.attention_norm_bias);
    gate_norm(weights.attention_norm_gate_in, weights.attention_norm_gate_out, x);
    const bool has_laurel = weights.laurel_in.weight != nullptr;
    if (has_laurel) run_laurel(weights, x);
    run_mixers(layer, weights, x, stream.branch);
    write(stream, weights.attention_post_norm);
    multiply_parts(plan.mixer_factors, stream);
    if (has_laurel) add_laurel(stream);
  }
  run_mlp_branch(layer, weights, stream);
}

void Transformer::run_mlp_branch(int32_t layer, const LayerWeights& weights, Stream& stream) {
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  if (plan.mlp == MlpKind::kBoth) {
    run_both_mlps(layer, weights, stream);
  } else if (plan.mlp == MlpKind::kShortcut) {
    run_mlp_beside_shortcut(layer, weights, stream);
  } else if (plan.mlp != MlpKind::kNone) {
    const Tensor x = read(stream, weights.mlp_norm, weights.mlp_norm_bias);
    gate_norm(weights.mlp_norm_gate_in, weights.mlp_norm_gate_out, x);
    run_mlp(layer, weights, x, stream.branch);
    write(stream, weights.mlp_post_norm);
    multiply_parts(plan.mlp_factors, stream);
  }
  if (layer > 0 && config_.layers[static_cast<size_t>(layer) - 1].mlp == MlpKind::kShortcut) {
    const Tensor shortcut = workspace_.shortcut.first_rows(stream.sum.rows);
    device_.add({.x = stream.branch, .y = shortcut, .out = stream.branch});
  }
}

void Transformer::run_mlp_beside_shortcut(int32_t layer,
                                          const LayerWeights& weights,
                                          Stream& stream) {
  const Tensor x = read(stream, weights.mlp_norm, weights.mlp_norm_bias);
  const Tensor shortcut = workspace_.shortcut.first_rows(x.rows);
  run_experts(layer, weights, x, shortcut);
  communicator_.all_reduce_sum(shortcut);
  run_dense_mlp(weights.xielu, weights.gate_up, weights.mlp_inner_norm, weights.down,
                gate_limits_of(config_, layer, &LayerPlan::gate_limits), {}, x, stream.branch);
  write(stream, weights.mlp_post_norm);
}

void Transformer::run_both_mlps(int32_t layer, const LayerWeights& weights, Stream& stream) {
  const Tensor chosen = workspace_.second_branch.first_rows(stream.sum.rows);
  run_dense_mlp(weights.xielu, weights.gate_up, weights.mlp_inner_norm, weights.down,
                gate_limits_of(config_, layer, &LayerPlan::gate_limits), {},
                read(stream, weights.mlp_norm, weights.mlp_norm_bias), stream.branch);
  communicator_.all_reduce_sum(stream.branch);
  norm_inner(weights.dense_post_norm, stream.branch);
  choose_experts(weights, read(stream, weights.router_norm, {}));
  run_chosen_experts(layer, weights, read(stream, weights.experts_norm, {}), chosen);
  communicator_.all_reduce_sum(chosen);
  norm_inner(weights.experts_post_norm, chosen);
  device_.add({.x = stream.branch, .y = chosen, .out = stream.branch});
  write_whole(stream, weights.mlp_post_norm);
}

void Transformer::run_mixers(int32_t layer,
                             const LayerWeights& weights,
                             const Tensor& x,
                             const Tensor& out) {
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  if (!plan.has_attention) return run_state(layer, weights, x, out);
  if (!plan.has_state) return run_attention(layer, weights, x, out);
  const Tensor attended = workspace_.second_branch.first_rows(x.rows);
  run_state(layer, weights, x, out);
  run_attention(layer, weights, x, attended);
  device_.add({.x = out, .y = attended, .out = out});
}

// The MLP has a norm of its own, or reads what attention reads.
void Transformer::run_branches_at_once(const LayerWeights& weights, int32_t layer, Stream& stream) {
  const Tensor mlp_branch = workspace_.second_branch.first_rows(stream.sum.rows);
  Tensor x = read(stream, weights.attention_norm, weights.attention_norm_bias);
  run_attention(layer, weights, x, stream.branch);
  if (weights.mlp_norm.get() != nullptr) x = read(stream, weights.mlp_norm, weights.mlp_norm_bias);
  run_mlp(layer, weights, x, mlp_branch);
  device_.add({.x = stream.branch, .y = mlp_branch, .out = stream.branch});
  write(stream, {});
}

}  // namespace tgi
