// Transformer: layers whose block of attention and MLP feeds their state, and what such layers have
// for themselves beside the matrices that they share.
#include <array>
#include <span>

#include "engine/model/transformer.h"

namespace tgi {

// The block has no stream of its own: its MLP reads what its attention gives.
void Transformer::run_fed_state(int32_t layer, const LayerWeights& weights, Stream& stream) {
  add_branch(stream);
  const Tensor fed = workspace_.second_branch.first_rows(stream.sum.rows);
  const Tensor x = workspace_.normed_streams.first_rows(stream.sum.rows);
  NormArgs norm = norm_args(weights.block_norm, {});
  norm.x = stream.all;
  norm.out = x;
  device_.norm(norm);
  run_attention(layer, weights, x, fed);
  norm_inner(weights.mlp_norm, fed);
  run_block_mlp(weights, fed, stream.branch);
  weights.block_out.apply(device_, stream.branch, fed);
  device_.add({.x = fed, .y = stream.sum, .out = fed});
  norm_inner(weights.attention_norm, fed);
  run_state(layer, weights, fed, stream.branch);
  write(stream, {});
}

void Transformer::run_block_mlp(const LayerWeights& weights, const Tensor& x, const Tensor& out) {
  const int64_t width = weights.down.weight->cols;
  const Tensor gate_up = workspace_.gate_up.first_rows(x.rows).columns(0, 2 * width);
  const Tensor activated = workspace_.activated.first_rows(x.rows).columns(0, width);
  weights.gate_up.apply(device_, x, gate_up);
  add_low_rank(weights.gate_up_low_in, std::array{&weights.gate_up_low_out}, x, gate_up);
  activate(weights.xielu, {}, gate_up, activated);
  weights.down.apply(device_, activated, out);
}

// `in` gives a short row for each of `outs`, whose columns follow each other.
void Transformer::add_low_rank(const Linear& in,
                               std::span<const Linear* const> outs,
                               const Tensor& x,
                               const Tensor& out) {
  if (in.weight == nullptr) return;
  const int64_t rank = config_.shared_blocks.low_rank;
  const Tensor rows = workspace_.low_short.first_rows(x.rows).columns(0, in.weight->rows);
  in.apply(device_, x, rows);
  int64_t first = 0;
  for (size_t i = 0; i < outs.size(); ++i) {
    const Tensor sum = out.columns(first, outs[i]->weight->rows);
    const Tensor added = workspace_.low_added.first_rows(x.rows).columns(0, sum.cols);
    outs[i]->apply(device_, rows.columns(static_cast<int64_t>(i) * rank, rank), added);
    device_.add({.x = sum, .y = added, .out = sum});
    first += sum.cols;
  }
}

}  // namespace tgi
