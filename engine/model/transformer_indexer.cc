// Transformer: layers whose tokens see only some of those before them, which small heads choose.
#include "engine/model/transformer.h"

namespace tgi {

// `x`: what attention reads; `short_q`: the queries' short row, where attention is a latent one.
SeenChoice Transformer::choose_tokens(int32_t layer,
                                      const LayerWeights& weights,
                                      const Tensor& x,
                                      const Tensor& short_q) {
  const IndexerConfig& indexer = config_.indexer;
  const LayerPlan& plan = config_.layers[static_cast<size_t>(layer)];
  const SeenTokens seen = plan.seen;
  if (seen == SeenTokens::kAll) return {};
  const SeenChoice out = {
      .heads_per_choice = config_.num_heads / indexer.num_choices(),
      .first_head = communicator_.rank() * num_heads_,
  };
  if (seen == SeenTokens::kLastChoice) return out;

  const KvPlace place = indexer_places_[static_cast<size_t>(layer)];
  const Tensor heads = workspace_.indexer.first_rows(x.rows);
  const Tensor queries = heads.columns(0, indexer.query_cols());
  const Tensor normed = workspace_.indexer_input.first_rows(indexer.norms_stream ? x.rows : 0);
  if (indexer.norms_stream) {
    device_.norm({.kind = indexer.norm_kind,
                  .eps = indexer.norm_eps,
                  .weight = weights.indexer_input_norm.get(),
                  .bias = weights.indexer_input_norm_bias.get(),
                  .x = x,
                  .residual = {},
                  .out = normed});
  }
  const Tensor& read = indexer.reads_short_queries ? short_q : indexer.norms_stream ? normed : x;
  weights.indexer_query.apply(device_, read, queries);
  weights.indexer_key.apply(device_, x, heads.columns(queries.cols, indexer.head_dim));
  device_.qk_norm_rope_store_kv({
      .place = place,
      .num_heads = indexer.num_heads,
      .num_kv_heads = 1,
      .head_dim = indexer.head_dim,
      .keys_only = true,
      .first_rotated = indexer.first_rotated,
      .rope = added_rope(plan.rope == kNoRope ? kNoRope : indexer.rope),
      .head_scales = weights.indexer_scales.get(),
      .norm_kind = indexer.norm_kind,
      .q_norm = weights.indexer_query_norm.get(),
      .k_norm = weights.indexer_key_norm.get(),
      .k_norm_bias = weights.indexer_key_norm_bias.get(),
      .norm_eps = indexer.norm_eps,
      .qkv = heads,
  });
  ChooseArgs choose{.place = place,
                    .rule = indexer.rule,
                    .num_heads = indexer.num_heads,
                    .head_dim = indexer.head_dim,
                    .q = queries,
                    .weights = {}};
  if (indexer.weighs_heads) {
    choose.weights = workspace_.indexer_weights.first_rows(x.rows);
    weights.indexer_weights.apply(device_, x, choose.weights);
  }
  device_.choose_tokens(choose);
  return out;
}

}  // namespace tgi
