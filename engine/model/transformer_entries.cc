// Transformer: attention whose tokens see a window of those before them, and what lies behind it as
// entries that stand for several tokens (EntriesConfig, engine/device/compress_ops.h).
#include "engine/model/transformer.h"

namespace tgi {

// What is rotated of a head are its last columns.
int32_t Transformer::first_rotated(int32_t head_dim, int32_t rope) const {
  return rope == kNoRope ? 0 : head_dim - config_.ropes[static_cast<size_t>(rope)].rotary_dim;
}

// In place, without keys.
void Transformer::rotate_queries(int32_t num_heads,
                                 int32_t head_dim,
                                 int32_t rope,
                                 const Tensor& queries) {
  if (rope == kNoRope) return;
  device_.qk_norm_rope_store_kv({.num_heads = num_heads,
                                 .num_kv_heads = 0,
                                 .head_dim = head_dim,
                                 .keys_only = true,
                                 .first_rotated = first_rotated(head_dim, rope),
                                 .rope = ropes_[static_cast<size_t>(rope)],
                                 .qkv = queries});
}

void Transformer::run_entries_attention(int32_t layer,
                                        const LayerWeights& weights,
                                        const Tensor& x,
                                        const Tensor& out) {
  const LatentConfig& latent = config_.latent;
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  const int32_t head_dim = latent.rank;
  const int64_t q_size = int64_t{num_heads_} * head_dim;
  const Tensor down = workspace_.latent_down.first_rows(x.rows);
  const Tensor short_q = down.columns(0, latent.query_rank);
  const Tensor key = down.columns(latent.query_rank, head_dim);
  const Tensor qkv = workspace_.qkv.first_rows(x.rows).columns(0, q_size + head_dim);
  const Tensor attended = workspace_.attended.first_rows(x.rows).columns(0, q_size);
  const Tensor group_rows = workspace_.group_rows.first_rows(x.rows);
  const Tensor ones = workspace_.ones.columns(0, head_dim);
  const KvPlace place = kv_places_[static_cast<size_t>(layer)];

  weights.latent_down.apply(device_, x, down);
  norm_in_place(NormKind::kRms, latent.norm_eps, weights.query_norm.get(), short_q);
  norm_in_place(NormKind::kRms, latent.norm_eps, weights.latent_norm.get(), key);
  SeenEntries entries;
  SeenChoice seen;
  if (plan.tokens_per_entry > 0) {
    const KvPlan::EntryPlaces& places = entry_places_[static_cast<size_t>(layer)];
    const Tensor rows =
        workspace_.entry_rows.first_rows(x.rows).columns(0, weights.entry_rows.weight->rows);
    weights.entry_rows.apply(device_, x, rows);
    device_.compress({.rows = places.rows,
                      .entries = places.entries,
                      .tokens_per_entry = plan.tokens_per_entry,
                      .head_dim = head_dim,
                      .overlaps = plan.entries_overlap,
                      .rope = added_rope(plan.rope),
                      .first_rotated = first_rotated(head_dim, plan.rope),
                      .norm_eps = config_.norm_eps,
                      .norm = weights.entry_norm.get(),
                      .gate_bias = weights.entry_gate_bias.get(),
                      .x = rows});
    entries = {.place = places.entries, .tokens_per_entry = plan.tokens_per_entry};
    seen = choose_entries(layer, weights, x, short_q);
  }
  weights.qkv.apply(device_, short_q, qkv.columns(0, q_size));
  device_.add({.x = {}, .y = key, .out = qkv.columns(q_size, head_dim)});
  device_.qk_norm_rope_store_kv({.place = place,
                                 .num_heads = num_heads_,
                                 .num_kv_heads = 1,
                                 .head_dim = head_dim,
                                 .keys_only = true,
                                 .first_rotated = first_rotated(head_dim, plan.rope),
                                 .rope = added_rope(plan.rope),
                                 .q_norm = &ones,
                                 .norm_eps = config_.norm_eps,
                                 .qkv = qkv});
  device_.attention({.place = place,
                     .num_heads = num_heads_,
                     .num_kv_heads = 1,
                     .head_dim = head_dim,
                     .scale = config_.attention_scale,
                     .sliding_window = plan.sliding_window,
                     .sinks = weights.sinks.get(),
                     .latent_dim = head_dim,
                     .entries = entries,
                     .seen = seen,
                     .q = qkv.columns(0, q_size),
                     .out = attended});
  rotate_queries(num_heads_, head_dim, plan.back_rope, attended);
  device_.head_matmul({.heads = weights.output_groups.views,
                       .x_step = q_size / config_.entries.output_groups,
                       .out_step = config_.entries.output_rank,
                       .x = attended,
                       .out = group_rows});
  weights.o.apply(device_, group_rows, out);
}

// Of the entries, by smaller ones of the same tokens.
SeenChoice Transformer::choose_entries(int32_t layer,
                                       const LayerWeights& weights,
                                       const Tensor& x,
                                       const Tensor& short_q) {
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  if (plan.seen == SeenTokens::kAll) return {};
  const IndexerConfig& indexer = config_.indexer;
  const KvPlan::EntryPlaces& places = indexer_entry_places_[static_cast<size_t>(layer)];
  const Tensor rows =
      workspace_.entry_rows.first_rows(x.rows).columns(0, weights.indexer_entry_rows.weight->rows);
  weights.indexer_entry_rows.apply(device_, x, rows);
  device_.compress({.rows = places.rows,
                    .entries = places.entries,
                    .tokens_per_entry = plan.tokens_per_entry,
                    .head_dim = indexer.head_dim,
                    .overlaps = plan.entries_overlap,
                    .rope = added_rope(plan.rope),
                    .first_rotated = first_rotated(indexer.head_dim, plan.rope),
                    .norm_eps = config_.norm_eps,
                    .norm = weights.indexer_entry_norm.get(),
                    .gate_bias = weights.indexer_entry_gate_bias.get(),
                    .x = rows});
  const Tensor queries = workspace_.indexer.first_rows(x.rows).columns(0, indexer.query_cols());
  weights.indexer_query.apply(device_, short_q, queries);
  rotate_queries(indexer.num_heads, indexer.head_dim, plan.rope, queries);
  const Tensor numbers = workspace_.indexer_weights.first_rows(x.rows);
  weights.indexer_weights.apply(device_, x, numbers);
  device_.choose_tokens({.place = places.entries,
                         .tokens_per_entry = plan.tokens_per_entry,
                         .rule = indexer.rule,
                         .num_heads = indexer.num_heads,
                         .head_dim = indexer.head_dim,
                         .q = queries,
                         .weights = numbers});
  return {.heads_per_choice = config_.num_heads, .first_head = communicator_.rank() * num_heads_};
}

}  // namespace tgi
