// Transformer: latent attention (https://arxiv.org/abs/2405.04434), always in its absorbed form.
// What is cached of a token is one short row for all heads. A head's key would be key_up^T times
// its latent, so that a score is (key_up q) times the latent itself; and what is attended to is a
// sum of latents, of which value_up makes the head's value once.
#include "engine/model/transformer.h"

namespace tgi {

void Transformer::run_latent_attention(int32_t layer,
                                       const LayerWeights& weights,
                                       const Tensor& x,
                                       const Tensor& out) {
  const LatentConfig& latent = config_.latent;
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  const int32_t key_dim = latent_key_dim(config_, layer);
  const Matrix* const makes_down = weights.latent_down.weight.get();
  const Tensor down = workspace_.latent_down.first_rows(x.rows).columns(
      0, makes_down == nullptr ? 0 : makes_down->rows);
  const Tensor short_q = down.columns(0, latent.query_rank);
  const Tensor key = plan.has_own_kv() ? down.columns(latent.query_rank, key_dim) : Tensor{};
  const Tensor q = workspace_.qkv.first_rows(x.rows);
  const Tensor latent_q =
      workspace_.latent_q.first_rows(x.rows).columns(0, int64_t{num_heads_} * key_dim);
  const Tensor latents = workspace_.latents.first_rows(x.rows);
  const Tensor attended = workspace_.attended.first_rows(x.rows);

  const auto norm = [&](const DeviceVector& weight, const Tensor& row) {
    norm_in_place(NormKind::kRms, latent.norm_eps, weight.get(), row);
  };
  if (makes_down != nullptr) weights.latent_down.apply(device_, x, down);
  if (plan.has_own_kv()) {
    norm(weights.latent_norm, key.columns(0, latent.rank));
    multiply(key.columns(0, latent.rank), latent.multiplier);
  }
  const Tensor pair = workspace_.query_pair.first_rows(x.rows);
  if (latent.reads_row_twice) {
    device_.add({.x = {}, .y = short_q, .out = pair.columns(latent.query_rank, latent.query_rank)});
  }
  if (latent.query_rank > 0) norm(weights.query_norm, short_q);
  if (latent.reads_row_twice) {
    device_.add({.x = {}, .y = short_q, .out = pair.columns(0, latent.query_rank)});
  }
  const SeenChoice seen = choose_tokens(layer, weights, x, short_q);
  const Tensor q_input = latent.reads_row_twice ? pair : latent.query_rank > 0 ? short_q : x;
  weights.qkv.apply(device_, q_input, q);
  device_.rotate_and_store_latent({.place = kv_places_[static_cast<size_t>(layer)],
                                   .num_heads = num_heads_,
                                   .kept_dim = latent_kept_dim(config_, layer),
                                   .latent_dim = latent.rank,
                                   .rope = added_rope(plan.rope),
                                   .query_scale = plan.query_scale,
                                   .head_scales = weights.head_scales.get(),
                                   .q = q,
                                   .key = key,
                                   .latent_q = latent_q});
  weights.key_up.apply(device_, config_.head_dim, q, key_dim, latent_q);
  device_.attention({.place = kv_places_[static_cast<size_t>(layer)],
                     .num_heads = num_heads_,
                     .num_kv_heads = 1,
                     .head_dim = key_dim,
                     .scale = config_.attention_scale * plan.score_multiplier,
                     .softcap = config_.attention_softcap,
                     .sliding_window = plan.sliding_window,
                     .attention_chunk = plan.attention_chunk,
                     .sinks = weights.sinks.get(),
                     .latent_dim = latent.rank,
                     .seen = seen,
                     .q = latent_q,
                     .out = latents});
  weights.value_up.apply(device_, latent.rank, latents, latent.value_dim, attended);
  if (latent.gates_values) {
    const Tensor gates = workspace_.value_gates.first_rows(x.rows);
    weights.value_gate.apply(device_, latent.reads_row_twice ? pair : x, gates);
    device_.gated_norm({.kind = config_.output_gate, .x = attended, .gate = gates});
  } else if (config_.has_output_gate) {
    const Tensor gates = down.columns(down.cols - num_heads_, num_heads_);
    device_.gated_norm({.kind = config_.output_gate, .x = attended, .gate = gates});
  }
  weights.o.apply(device_, attended, out);
}

}  // namespace tgi
