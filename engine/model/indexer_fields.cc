#include "engine/model/indexer_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/config_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kTypes = "indexer_types";
constexpr std::string_view kPattern = "index_topk_pattern";

// As indexer_types has them: also of a string of F and S.
std::vector<std::string> read_types(const JsonReader& config,
                                    std::string_view key,
                                    const ModelConfig& model) {
  const Json& given = config.json().at(std::string(key));
  if (!given.is_string()) return read_layer_names(config, key, model);
  std::vector<std::string> out;
  for (const char letter : given.get<std::string>()) {
    out.emplace_back(letter == 'F' ? "full" : letter == 'S' ? "shared" : std::string(1, letter));
  }
  if (out.size() == model.layers.size()) return out;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected {} letters, one per layer, got {}", config.path_of(key),
                          model.layers.size(), out.size()));
}

SeenTokens seen_by(const JsonReader& config,
                   std::string_view key,
                   size_t layer,
                   const std::string& type) {
  if (type == "full") return SeenTokens::kOwnChoice;
  if (type == "shared" && layer > 0) return SeenTokens::kLastChoice;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: entry {}: expected full{}, got '{}'", config.path_of(key), layer,
                          layer > 0 ? " or shared" : ", as no layer before it has chosen", type));
}

}  // namespace

void read_indexer(const JsonReader& config, const IndexerFields& fields, ModelConfig& model) {
  IndexerConfig& indexer = model.indexer;
  indexer.num_heads =
      read_size(config, "index_n_heads", fields.default_num_heads, kMaxIndexerHeads);
  indexer.head_dim = read_size(config, "index_head_dim", fields.default_head_dim, kMaxHeadDim);
  indexer.rule.top_k = read_size(config, fields.top_k, fields.default_top_k, kMaxPositions);
  indexer.rope = model.layers.empty() ? kNoRope : model.layers.front().rope;
  if (indexer.rope == kNoRope) return;
  const int32_t rotated = model.ropes[static_cast<size_t>(indexer.rope)].rotary_dim;
  if (indexer.head_dim >= rotated) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected at least the {} columns that are rotated, got {}",
                          config.path_of("index_head_dim"), rotated, indexer.head_dim));
}

void read_sparse_attention(const JsonReader& config,
                           const IndexerFields& fields,
                           bool rotates_pairs,
                           ModelConfig& model) {
  read_indexer(config, fields, model);
  if (model.latent.query_rank == 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a number, as the indexer reads the queries' short row",
                            config.path_of("q_lora_rank")));
  }
  IndexerConfig& indexer = model.indexer;
  indexer.weighs_heads = true;
  indexer.reads_short_queries = true;
  indexer.norm_kind = NormKind::kLayer;
  indexer.norm_eps = 1e-6F;
  if (indexer.rope == kNoRope) return;
  RopeSpec rope = model.ropes[static_cast<size_t>(indexer.rope)];
  if (rope.interleaved == rotates_pairs) return;
  rope.interleaved = rotates_pairs;
  indexer.rope = static_cast<int32_t>(model.ropes.size());
  model.ropes.push_back(std::move(rope));
}

void read_indexer_types(const JsonReader& config, ModelConfig& model) {
  for (const std::string_view key : {kTypes, kPattern}) {
    if (!config.has(key)) continue;
    const std::vector<std::string> types = read_types(config, key, model);
    for (size_t i = 0; i < types.size(); ++i) {
      model.layers[i].seen = seen_by(config, key, i, types[i]);
    }
    return;
  }
  const int64_t every = std::max<int64_t>(config.integer_or("index_topk_freq", 1), 1);
  const int64_t offset = config.integer_or("index_skip_topk_offset", 2);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const int64_t behind = std::max<int64_t>(static_cast<int64_t>(i) - offset + 1, 0);
    model.layers[i].seen =
        seen_by(config, "index_topk_freq", i, behind % every == 0 ? "full" : "shared");
  }
}

}  // namespace tgi
