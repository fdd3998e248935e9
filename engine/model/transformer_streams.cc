// Transformer: hidden states of several streams (AltUp, hyper-connections), what two small matrices
// add beside attention (LAuReL), and gates of what norms give.
#include <numbers>

#include "engine/model/transformer.h"

namespace tgi {
namespace {

// Of the mean square of what a matrix makes of a stream.
constexpr float kLeastSquare = 1e-5F;

}  // namespace

Tensor Transformer::stream_of(const Tensor& all, int32_t index) const {
  return all.columns(int64_t{index} * config_.hidden_size, config_.hidden_size);
}

void Transformer::make_streams(const Tensor& all) {
  const Tensor embedded = stream_of(all, 0);
  for (int32_t i = 1; i < config_.streams.count; ++i) {
    const Tensor stream = stream_of(all, i);
    weights_.stream_in[static_cast<size_t>(i) - 1].apply(device_, embedded, stream);
    device_.match_rms({.least_square = kLeastSquare, .like = embedded, .x = stream});
  }
}

// Prediction hangs on the stream that a layer is going to work on, correction on what it made.
StreamRouting Transformer::route_streams(const LayerWeights& weights,
                                         const DeviceVector& matrix,
                                         const Tensor& x) {
  const Tensor normed = workspace_.normed.first_rows(x.rows);
  const Tensor routed = workspace_.stream_routed.first_rows(x.rows);
  NormArgs norm = norm_args(weights.stream_router_norm, {});
  norm.x = x;
  norm.out = normed;
  device_.norm(norm);
  weights.stream_router.apply(device_, normed, routed);
  return {.count = config_.streams.count,
          .scale = 1.0F / static_cast<float>(config_.hidden_size),
          .routed = routed,
          .matrix = matrix.get()};
}

void Transformer::predict_streams(const LayerWeights& weights, Stream& stream) {
  const Tensor active = stream_of(stream.all, config_.streams.active);
  device_.predict_streams({.routing = route_streams(weights, weights.stream_prediction, active),
                           .streams = stream.all});
  device_.add({.x = {}, .y = active, .out = stream.sum});
}

void Transformer::correct_streams(const LayerWeights& weights, Stream& stream) {
  add_branch(stream);
  device_.correct_streams({.routing = route_streams(weights, weights.stream_correction, stream.sum),
                           .active = config_.streams.active,
                           .x = stream.sum,
                           .scales = weights.stream_column_scales.get(),
                           .streams = stream.all,
                           .out = stream.sum});
}

void Transformer::add_to_further_streams(Stream& stream) {
  if (!stream.has_branch) return;
  for (int32_t i = 1; i < config_.streams.count; ++i) {
    const Tensor further = stream_of(stream.all, i);
    device_.add({.x = further, .y = stream.branch, .out = further});
  }
  stream.has_branch = false;
}

void Transformer::join_streams(const Tensor& all, bool takes_output_rows, const Tensor& out) {
  const Tensor first = workspace_.normed.first_rows(out.rows);
  const Tensor taken = workspace_.residual.first_rows(out.rows);
  const Tensor made = workspace_.branch.first_rows(out.rows);
  const auto take = [&](int32_t index, const Tensor& rows) {
    const Tensor stream = stream_of(all, index);
    if (takes_output_rows) {
      device_.gather_output_rows(stream, rows);
    } else {
      device_.add({.x = {}, .y = stream, .out = rows});
    }
  };
  take(0, first);
  take(0, out);
  for (int32_t i = 1; i < config_.streams.count; ++i) {
    take(i, taken);
    const Linear& out_of = weights_.stream_out[static_cast<size_t>(i) - 1];
    takes_output_rows ? out_of.apply_to_output_rows(device_, taken, made)
                      : out_of.apply(device_, taken, made);
    device_.match_rms({.least_square = kLeastSquare, .like = first, .x = made});
    device_.add({.x = out, .y = made, .out = out});
  }
  multiply(out, 1.0F / static_cast<float>(config_.streams.count));
}

void Transformer::copy_to_streams(const Tensor& all) {
  for (int32_t i = 1; i < config_.streams.count; ++i) {
    device_.add({.x = {}, .y = stream_of(all, 0), .out = stream_of(all, i)});
  }
}

StreamConnection Transformer::connect(const Linear& made,
                                      const DeviceVector& base,
                                      const DeviceVector& scale,
                                      const Tensor& all) {
  const Tensor numbers = workspace_.connections.first_rows(all.rows).columns(0, made.weight->rows);
  made.apply(device_, all, numbers);
  return {.count = config_.streams.count,
          .norm_eps = config_.norm_eps,
          .eps = config_.streams.eps,
          .made = numbers,
          .base = base.get(),
          .scales = scale.get(),
          .streams = all};
}

void Transformer::expand(const StreamConnection& connection, const Tensor& branch) {
  const StreamsConfig& streams = config_.streams;
  device_.expand_streams({.connection = connection,
                          .magnitude = streams.magnitude,
                          .branch_eps = streams.adds_eps_to_branch ? streams.eps : 0.0F,
                          .mixing_turns = streams.mixing_turns,
                          .x = branch});
}

void Transformer::run_connected_branches(int32_t layer,
                                         const LayerWeights& weights,
                                         Stream& stream) {
  const StreamConnection before =
      connect(weights.attention_connection, weights.attention_connection_base,
              weights.attention_connection_scale, stream.all);
  device_.collapse_streams({.connection = before, .out = stream.sum});
  run_mixers(layer, weights, read(stream, weights.attention_norm, {}), stream.branch);
  communicator_.all_reduce_sum(stream.branch);
  expand(before, stream.branch);

  const StreamConnection behind = connect(weights.mlp_connection, weights.mlp_connection_base,
                                          weights.mlp_connection_scale, stream.all);
  device_.collapse_streams({.connection = behind, .out = stream.sum});
  run_mlp(layer, weights, read(stream, weights.mlp_norm, {}), stream.branch);
  communicator_.all_reduce_sum(stream.branch);
  expand(behind, stream.branch);
}

// Into what the last norm reads.
void Transformer::join_connected(const Tensor& all, const Tensor& out) {
  const Tensor numbers =
      workspace_.connections.first_rows(all.rows).columns(0, config_.streams.count);
  device_.matmul({.x = all, .w = weights_.head_connection.get(), .out = numbers});
  device_.collapse_streams({.connection = {.count = config_.streams.count,
                                           .norm_eps = config_.norm_eps,
                                           .eps = config_.streams.eps,
                                           .made = numbers,
                                           .base = weights_.head_connection_base.get(),
                                           .scales = weights_.head_connection_scale.get(),
                                           .streams = all},
                            .out = out});
}

void Transformer::gate_norm(const Linear& in, const Linear& out, const Tensor& x) {
  if (in.weight == nullptr) return;
  const Tensor short_row = workspace_.norm_gate_short.first_rows(x.rows);
  const Tensor gates = workspace_.norm_gates.first_rows(x.rows);
  in.apply(device_, x, short_row);
  device_.activation(
      {.kind = Activation::kSilu, .gated = false, .in = short_row, .out = short_row});
  out.apply(device_, short_row, gates);
  device_.gated_norm({.kind = GateKind::kSigmoid, .x = x, .gate = gates});
}

void Transformer::run_laurel(const LayerWeights& weights, const Tensor& x) {
  const Tensor short_row = workspace_.laurel_short.first_rows(x.rows);
  const Tensor laurel = workspace_.laurel.first_rows(x.rows);
  weights.laurel_in.apply(device_, x, short_row);
  weights.laurel_out.apply(device_, short_row, laurel);
  norm_inner(weights.laurel_norm, laurel);
  device_.add({.x = x, .y = laurel, .out = laurel});
}

void Transformer::add_laurel(Stream& stream) {
  add_branch(stream);
  device_.add(
      {.x = stream.sum, .y = workspace_.laurel.first_rows(stream.sum.rows), .out = stream.sum});
  multiply(stream.sum, static_cast<float>(1.0 / std::numbers::sqrt2));
}

}  // namespace tgi
