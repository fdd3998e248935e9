// Transformer: rows of each token for each layer (Gemma 3n's per-layer embeddings): a row of a
// table of their own, and what a matrix makes of the token's embedding. A layer gates its row by
// the stream and adds what it makes of it.
#include <cmath>
#include <numbers>

#include "engine/model/transformer.h"

namespace tgi {

void Transformer::embed_layer_inputs(const Tensor& embedded) {
  const int64_t size = config_.layer_inputs.size;
  const Tensor rows = workspace_.layer_inputs.first_rows(embedded.rows);
  const Tensor given = workspace_.layer_input_in.first_rows(embedded.rows);
  device_.embed({.table = weights_.layer_input_table.get(),
                 .multiplier = std::sqrt(static_cast<float>(size)),
                 .out = rows});
  weights_.layer_input_in.apply(device_, embedded, given);
  multiply(given, 1.0F / std::sqrt(static_cast<float>(config_.hidden_size)));
  // Each layer's row by itself: they lie one behind the other.
  Tensor each = given;
  each.rows = given.rows * config_.num_layers;
  each.cols = size;
  each.stride = size;
  norm_in_place(config_.norm_kind, config_.norm_eps, weights_.layer_input_norm.get(), each);
  device_.add({.x = given, .y = rows, .out = rows});
  multiply(rows, static_cast<float>(1.0 / std::numbers::sqrt2));
}

void Transformer::add_layer_input(int32_t layer, const LayerWeights& weights, Stream& stream) {
  const int64_t size = config_.layer_inputs.size;
  const int64_t num_rows = stream.sum.rows;
  const Tensor row = workspace_.layer_inputs.first_rows(num_rows).columns(layer * size, size);
  const Tensor gate = workspace_.layer_gate.first_rows(num_rows);
  const Tensor product = workspace_.layer_product.first_rows(num_rows);
  add_branch(stream);
  weights.layer_input_gate.apply(device_, stream.sum, gate.columns(0, size));
  device_.add({.x = {}, .y = row, .out = gate.columns(size, size)});
  device_.activation({.kind = config_.activation, .gated = true, .in = gate, .out = product});
  weights.layer_input_out.apply(device_, product, stream.branch);
  write_whole(stream, weights.layer_input_post_norm);
}

void Transformer::scale_stream(const LayerWeights& weights, Stream& stream) {
  if (weights.stream_scale == 1.0F) return;
  add_branch(stream);
  multiply(stream.sum, weights.stream_scale);
}

}  // namespace tgi
