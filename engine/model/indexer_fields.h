// What the readers of families with an indexer share: its heads, and what it chooses.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "engine/model/known_fields.h"
#include "engine/model/model_config.h"

namespace tgi {

struct IndexerFields {
  int64_t default_num_heads = 64;
  int64_t default_head_dim = 128;
  int64_t default_top_k = 2048;
  std::string_view top_k = "index_topk";
};

// Of DeepSeek's indexer, and of what stands around it in its families.
inline constexpr auto kSparseAttentionFields = std::to_array<KnownField>({
    read("index_topk"),
    read("index_head_dim"),
    read("index_n_heads"),
    read_or_null("mlp_layer_types"),
    harmless("layer_types", "tokens are chosen in all layers"),
    harmless_if("mlp_bias", "[false]", "MLPs have no biases"),
    harmless("num_nextn_predict_layers", kOnlyDrafts),
});

// DeepSeek's indexer in layers that see what another one chose, where none chooses, and the rotary
// tables: known, and not needed.
inline constexpr auto kIndexerTensorsWithoutChoice = std::to_array<std::string_view>({
    ".rotary_emb.inv_freq",
    ".indexer.wq_b.weight",
    ".indexer.wq_b.weight_scale_inv",
    ".indexer.wk.weight",
    ".indexer.wk.weight_scale_inv",
    ".indexer.k_norm.weight",
    ".indexer.k_norm.bias",
    ".indexer.weights_proj.weight",
});

// The same behind a family's own names.
template <size_t kSize>
constexpr auto with_indexer_tensors(const std::array<std::string_view, kSize>& names) {
  std::array<std::string_view, kSize + kIndexerTensorsWithoutChoice.size()> out{};
  std::ranges::copy(kIndexerTensorsWithoutChoice, std::ranges::copy(names, out.begin()).out);
  return out;
}

// index_n_heads, index_head_dim and how much is chosen, into model.indexer; its rope is that of the
// first layer. REQUIRES: the ropes are read. Throws kInvalidArgument where its head is narrower
// than what is rotated of it.
void read_indexer(const JsonReader& config, const IndexerFields& fields, ModelConfig& model);

// DeepSeek's: one choice of tokens for all heads, by weights that the stream gives, with queries of
// the short row; keys have a norm with a mean.
void read_sparse_attention(const JsonReader& config,
                           const IndexerFields& fields,
                           bool rotates_pairs,
                           ModelConfig& model);

// Which layers choose, and which see what the last one before them chose: indexer_types,
// index_topk_pattern, or index_topk_freq and index_skip_topk_offset; all choose where there is none
// of them. Throws kInvalidArgument where the first layer would have nothing to see.
void read_indexer_types(const JsonReader& config, ModelConfig& model);

}  // namespace tgi
