// Transformer: attention of a layer, with the norms within it.
#include <array>

#include "engine/model/transformer.h"

namespace tgi {

KvHeads Transformer::heads_of(int32_t layer) const {
  KvHeads heads = kv_heads_of(config_, layer);
  heads.num_kv_heads /= communicator_.world_size();
  return heads;
}

void Transformer::run_attention(int32_t layer,
                                const LayerWeights& weights,
                                const Tensor& stream,
                                const Tensor& out) {
  if (has_entries(config_)) return run_entries_attention(layer, weights, stream, out);
  if (has_latents(config_)) return run_latent_attention(layer, weights, stream, out);
  const Tensor x = multiplied(stream, config_.attention_input_multiplier);
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  const KvHeads heads = heads_of(layer);
  const int32_t num_heads = num_heads_of(config_, layer) / communicator_.world_size();
  const int32_t num_new_kv_heads = plan.has_own_kv() ? heads.num_kv_heads : 0;
  const int64_t q_size = int64_t{num_heads} * heads.head_dim;
  const int64_t k_size = int64_t{num_new_kv_heads} * heads.head_dim;
  const int64_t v_size = int64_t{num_new_kv_heads} * heads.value_cols();
  const Tensor all = workspace_.qkv.first_rows(x.rows).columns(0, weights.qkv.weight->rows);
  const Tensor qkv = all.columns(0, q_size + k_size + v_size);
  const Tensor attended =
      workspace_.attended.first_rows(x.rows).columns(0, int64_t{num_heads} * heads.value_cols());
  const bool norms_heads = config_.qk_norm == QkNorm::kHead;
  const Tensor ones = plan.divides_qk ? workspace_.ones.columns(0, heads.head_dim) : Tensor{};
  const Tensor v_ones = plan.divides_v ? workspace_.ones.columns(0, heads.value_cols()) : Tensor{};
  const auto qk_norm = [&](const DeviceVector& weight) -> const Tensor* {
    if (!norms_heads) return nullptr;
    return plan.divides_qk ? &ones : weight.get();
  };

  weights.qkv.apply(device_, x, all);
  add_low_rank(weights.qkv_low_in,
               std::array{&weights.q_low_out, &weights.k_low_out, &weights.v_low_out}, x, qkv);
  if (k_size > 0) multiply(qkv.columns(q_size, k_size), config_.key_multiplier);
  if (!norms_heads) norm_qk_rows(weights, qkv.columns(0, q_size), qkv.columns(q_size, k_size));
  device_.qk_norm_rope_store_kv({
      .place = kv_places_[static_cast<size_t>(layer)],
      .num_heads = num_heads,
      .num_kv_heads = num_new_kv_heads,
      .head_dim = heads.head_dim,
      .value_dim = heads.value_dim,
      .rope = added_rope(plan.rope),
      .clip = config_.qkv_clip,
      .query_scale = plan.query_scale,
      .head_scales = weights.head_scales.get(),
      .norm_after_rope = config_.qk_norm_after_rope,
      .norm_kind = config_.qk_norm_kind,
      .q_norm = qk_norm(weights.q_norm),
      .k_norm = qk_norm(weights.k_norm),
      .v_norm = plan.divides_v ? &v_ones : nullptr,
      .q_norm_bias = weights.q_norm_bias.get(),
      .k_norm_bias = weights.k_norm_bias.get(),
      .norm_eps = config_.norm_eps,
      .qkv = qkv,
  });
  const SeenChoice seen = choose_tokens(layer, weights, x, {});
  const DistanceProducts products =
      multiply_distances(layer, qkv.columns(0, q_size), qkv.columns(q_size, k_size));
  device_.attention({.place = kv_places_[static_cast<size_t>(layer)],
                     .num_heads = num_heads,
                     .num_kv_heads = heads.num_kv_heads,
                     .head_dim = heads.head_dim,
                     .value_dim = heads.value_dim,
                     .scale = config_.attention_scale * plan.score_multiplier,
                     .softcap = config_.attention_softcap,
                     .sliding_window = plan.sliding_window,
                     .attention_chunk = plan.attention_chunk,
                     .alibi_slopes = config_.alibi_slopes.empty() ? nullptr : &workspace_.slopes,
                     .is_causal = config_.is_causal,
                     .distance_bias = weights_.distance_bias.get(),
                     .distance_products = products.num_kinds > 0 ? &products : nullptr,
                     .sinks = weights.sinks.get(),
                     .seen = seen,
                     .q = qkv.columns(0, q_size),
                     .out = attended});
  if (config_.has_output_gate) {
    const int64_t first = qkv.cols;
    device_.gated_norm(
        {.kind = config_.output_gate, .x = attended, .gate = all.columns(first, all.cols - first)});
  }
  norm_inner(weights.attention_inner_norm, attended);
  weights.o.apply(device_, subtract_heads(plan, weights, attended), out);
  multiply(out, config_.attention_output_multiplier);
}

// Rows of all heads follow each other there, so that a pair of heads is a row to its norm.
Tensor Transformer::subtract_heads(const LayerPlan& plan,
                                   const LayerWeights& weights,
                                   const Tensor& attended) {
  if (!plan.has_difference()) return attended;
  const int64_t half = attended.cols / 2;
  const Tensor out = workspace_.difference.first_rows(attended.rows);
  device_.add({.x = attended.columns(0, half),
               .y = attended.columns(half, half),
               .y_multiplier = -weights.difference,
               .out = out});
  const int64_t width = config_.value_dim;
  const Tensor pairs{out.data, out.dtype, out.rows * half / width, width, width};
  const Tensor ones = workspace_.ones.columns(0, width);
  norm_in_place(NormKind::kRms, config_.norm_eps, &ones, pairs);
  multiply(out, 1.0F - plan.first_difference);
  return out;
}

void Transformer::norm_in_place(NormKind kind, float eps, const Tensor* weight, const Tensor& x) {
  device_.norm({.kind = kind, .eps = eps, .weight = weight, .x = x, .residual = {}, .out = x});
}

void Transformer::norm_inner(const DeviceVector& weight, const Tensor& x) {
  if (weight.get() != nullptr) {
    norm_in_place(config_.norm_kind, config_.norm_eps, weight.get(), x);
  }
}

void Transformer::norm_qk_rows(const LayerWeights& weights, const Tensor& q, const Tensor& k) {
  const auto norm = [&](const DeviceVector& weight, const Tensor& part) {
    if (weight.get() != nullptr)
      norm_in_place(config_.qk_norm_kind, config_.norm_eps, weight.get(), part);
  };
  norm(weights.q_norm, q);
  norm(weights.k_norm, k);
}

}  // namespace tgi
