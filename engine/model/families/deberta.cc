// DeBERTa and its second version, which the third is too (DeBERTaV3, mDeBERTa): BERT whose scores
// have products with what was learned of distances.
// Sources: models/deberta and models/deberta_v2 in `transformers`,
// https://arxiv.org/abs/2006.03654, https://arxiv.org/abs/2111.09543.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kDebertaOfMasks = "is of the head that fills masks, which is not used";

// Before BERT's: of learned positions there may be none here.
constexpr auto kDebertaFields = join_fields(
    kBertFields,
    std::to_array<KnownField>({
        read("type_vocab_size"),
        read("relative_attention"),
        read("max_relative_positions"),
        read("position_biased_input"),
        read_or_null("pos_att_type"),
        read_or_null("embedding_size"),
        harmless_if(
            "pooler_hidden_act", R"(["gelu"])", "the head's first layer is followed by gelu"),
        harmless("pooler_hidden_size", "the head's first layer is as wide as the stream"),
        harmless("pooler_dropout", kOnlyTraining),
        harmless("cls_dropout", kOnlyTraining),
        harmless("legacy", kDebertaOfMasks),
        harmless("padding_idx", kOnlyTraining),
        harmless("summary_*", "is of another class than those of one text or pair"),
    }));

constexpr auto kDebertaV1Fields =
    join_fields(kDebertaFields,
                std::to_array<KnownField>({
                    harmless_if("talking_head", "[false]", "heads are not mixed"),
                }));

constexpr auto kDebertaV2Fields = join_fields(
    kDebertaFields,
    std::to_array<KnownField>({
        read("position_buckets"),
        read("share_att_key"),
        read("norm_rel_ebd"),
        read_or_null("attention_head_size"),
        harmless_if("conv_kernel_size", "[0]", "there is no convolution behind a layer"),
        harmless("conv_act", "there is no convolution behind a layer"),
        harmless("conv_groups", "there is no convolution behind a layer"),
    }));

// "c2p|p2c", or a list.
std::vector<std::string> kinds_of_products(const JsonReader& config) {
  constexpr const char* kField = "pos_att_type";
  std::vector<std::string> out;
  if (!config.has(kField)) return out;
  const Json& value = config.json().at(kField);
  if (value.is_array()) {
    for (const Json& each : value)
      out.push_back(each.is_string() ? each.get<std::string>() : each.dump());
  } else {
    std::string rest = config.string(kField);
    std::ranges::transform(rest, rest.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    std::erase(rest, ' ');
    for (size_t begin = 0; begin <= rest.size();) {
      const size_t end = std::min(rest.find('|', begin), rest.size());
      out.push_back(rest.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  for (const std::string& kind : out) {
    if ((kind == "c2p" || kind == "p2c") && std::ranges::count(out, kind) == 1) continue;
    throw Error(Code::kUnsupported,
                fmt::format("{}: expected c2p and p2c, each once at most, got '{}'",
                            config.path_of(kField), kind));
  }
  return out;
}

void read_distances(const JsonReader& config, bool has_buckets, ModelConfig& model) {
  DistanceConfig& distances = model.distances;
  const std::vector<std::string> products = kinds_of_products(config);
  model.attention_scale = 1.0F / std::sqrt(static_cast<float>(model.head_dim) *
                                           static_cast<float>(1 + products.size()));
  if (!config.boolean_or("relative_attention", false)) return;
  const int64_t stated = config.integer_or("max_relative_positions", -1);
  const int32_t reach = stated < 1 ? model.max_positions
                                   : read_size(config, "max_relative_positions", 0, kMaxPositions);
  const bool by_log = has_buckets && config.integer_or("position_buckets", -1) > 0;
  const int32_t span = by_log ? read_size(config, "position_buckets", 0, kMaxPositions) : reach;
  if (by_log && (span < 4 || reach - 1 <= span / 2)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 4 or more, and less than twice the {} positions that "
                            "they are of, got {}",
                            config.path_of("position_buckets"), reach, span));
  }
  distances.num_kinds = 2 * span;
  distances.log_reach = by_log ? reach : 0;
  distances.has_keys = std::ranges::count(products, "c2p") > 0;
  distances.has_queries = std::ranges::count(products, "p2c") > 0;
}

ModelConfig read_deberta_of(const JsonReader& config, DecoderFields fields, bool has_buckets) {
  fields.default_norm_eps = 1e-7;
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.learned_positions = config.boolean_or("position_biased_input", true);
  model.num_token_types = config.integer_or("type_vocab_size", 0) == 0
                              ? 0
                              : read_size(config, "type_vocab_size", 0, kMaxVocabSize);
  const int64_t width =
      config.has("embedding_size") ? config.integer("embedding_size") : model.hidden_size;
  if (width != model.hidden_size) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: embeddings of another width than the stream ({}) are not "
                            "supported here, got {}",
                            config.path_of("embedding_size"), model.hidden_size, width));
  }
  read_distances(config, has_buckets, model);
  return model;
}

ModelConfig read_deberta(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.default_vocab_size = 50265;
  return read_deberta_of(config, fields, false);
}

ModelConfig read_deberta_v2(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.head_dim = "attention_head_size";
  fields.default_vocab_size = 128100;
  fields.default_hidden_size = 1536;
  fields.default_num_layers = 24;
  fields.default_num_heads = 24;
  fields.default_intermediate = 6144;
  ModelConfig model = read_deberta_of(config, fields, true);
  model.distances.shares_projections = config.boolean_or("share_att_key", false);
  const std::string norm = config.string_or("norm_rel_ebd", "none");
  if (norm != "none" && norm != "layer_norm") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: '{}' is not supported; known are none, layer_norm",
                            config.path_of("norm_rel_ebd"), norm));
  }
  model.distances.norms_rows = norm == "layer_norm";
  return model;
}

constexpr bool has_distances(const ModelConfig& config, int32_t /*layer*/) {
  return config.distances.num_kinds > 0;
}
constexpr bool norms_distances(const ModelConfig& config, int32_t /*layer*/) {
  return config.distances.norms_rows;
}
constexpr bool has_own_keys(const ModelConfig& config, int32_t /*layer*/) {
  return config.distances.has_keys && !config.distances.shares_projections;
}
constexpr bool has_own_queries(const ModelConfig& config, int32_t /*layer*/) {
  return config.distances.has_queries && !config.distances.shares_projections;
}

constexpr auto kDebertaOuterTensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
        {Role::kPositionEmbedding, "embeddings.position_embeddings.weight", Dim::kPositions,
         Dim::kHidden, Split::kNone, has_positions},
        {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight", Dim::kTokenTypes,
         Dim::kHidden, Split::kNone, has_types},
        {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kHidden},
        {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kHidden},
        {Role::kDistanceEmbedding, "encoder.rel_embeddings.weight", Dim::kDistanceKinds,
         Dim::kHidden, Split::kNone, has_distances},
        {Role::kDistanceNorm, "encoder.LayerNorm.weight", Dim::kOne, Dim::kHidden, Split::kNone,
         norms_distances},
        {Role::kDistanceNormBias, "encoder.LayerNorm.bias", Dim::kOne, Dim::kHidden, Split::kNone,
         norms_distances},
    }),
    kBertAttendedTensors,
    kBertLayerTensors);

#define TGI_DEBERTA_SELF "encoder.layer.{layer}.attention.self."
constexpr auto kDebertaV1Tensors = join_tensors(
    kDebertaOuterTensors,
    std::to_array<TensorSpec>({
        {Role::kQ, TGI_DEBERTA_SELF "in_proj.weight", Dim::kQByHead, Dim::kHidden, Split::kRows},
        {.role = Role::kK,
         .name = TGI_DEBERTA_SELF "in_proj.weight",
         .rows = Dim::kKByHead,
         .cols = Dim::kHidden,
         .split = Split::kRows,
         .is_counted = false},
        {.role = Role::kV,
         .name = TGI_DEBERTA_SELF "in_proj.weight",
         .rows = Dim::kVByHead,
         .cols = Dim::kHidden,
         .split = Split::kRows,
         .is_counted = false},
        {Role::kQBias, TGI_DEBERTA_SELF "q_bias", Dim::kOne, Dim::kQ, Split::kRows},
        {Role::kVBias, TGI_DEBERTA_SELF "v_bias", Dim::kOne, Dim::kKv, Split::kRows},
        {Role::kDistanceKey, TGI_DEBERTA_SELF "pos_proj.weight", Dim::kQ, Dim::kHidden,
         Split::kRows, has_own_keys},
        {Role::kDistanceQuery, TGI_DEBERTA_SELF "pos_q_proj.weight", Dim::kQ, Dim::kHidden,
         Split::kRows, has_own_queries},
        {Role::kDistanceQueryBias, TGI_DEBERTA_SELF "pos_q_proj.bias", Dim::kOne, Dim::kQ,
         Split::kRows, has_own_queries},
    }));

constexpr auto kDebertaV2Tensors = join_tensors(
    kDebertaOuterTensors,
    std::to_array<TensorSpec>({
        {Role::kQ, TGI_DEBERTA_SELF "query_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
        {Role::kQBias, TGI_DEBERTA_SELF "query_proj.bias", Dim::kOne, Dim::kQ, Split::kRows},
        {Role::kK, TGI_DEBERTA_SELF "key_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
        {Role::kKBias, TGI_DEBERTA_SELF "key_proj.bias", Dim::kOne, Dim::kKv, Split::kRows},
        {Role::kV, TGI_DEBERTA_SELF "value_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows},
        {Role::kVBias, TGI_DEBERTA_SELF "value_proj.bias", Dim::kOne, Dim::kKv, Split::kRows},
        {Role::kDistanceKey, TGI_DEBERTA_SELF "pos_key_proj.weight", Dim::kQ, Dim::kHidden,
         Split::kRows, has_own_keys},
        {Role::kDistanceKeyBias, TGI_DEBERTA_SELF "pos_key_proj.bias", Dim::kOne, Dim::kQ,
         Split::kRows, has_own_keys},
        {Role::kDistanceQuery, TGI_DEBERTA_SELF "pos_query_proj.weight", Dim::kQ, Dim::kHidden,
         Split::kRows, has_own_queries},
        {Role::kDistanceQueryBias, TGI_DEBERTA_SELF "pos_query_proj.bias", Dim::kOne, Dim::kQ,
         Split::kRows, has_own_queries},
    }));
#undef TGI_DEBERTA_SELF

constexpr auto kDebertaClassifier = std::to_array<HeadLayer>({
    {.weight = "pooler.dense.weight",
     .bias = "pooler.dense.bias",
     .activation = HeadActivation::kGelu},
    {.weight = "classifier.weight", .bias = "classifier.bias"},
});
constexpr auto kDebertaHeads = std::to_array<HeadSpec>({
    {Task::kClassify, HeadInput::kFirst, kDebertaClassifier},
    {Task::kClassifyTokens, HeadInput::kEach, kTokenClassifier},
});
// Published checkpoints keep a table of positions that is not used.
constexpr auto kDebertaIgnored = std::to_array<std::string_view>(
    {"embeddings.position_ids", "embeddings.position_embeddings.weight", "pooler.dense.weight",
     "pooler.dense.bias", "cls.*", "lm_predictions.*", "mask_predictions.*"});

constexpr auto kDebertaV1Names = std::to_array<std::string_view>({"DebertaModel"});
constexpr auto kDebertaV1Types = std::to_array<std::string_view>({"deberta"});
constexpr auto kDebertaV2Names = std::to_array<std::string_view>({"DebertaV2Model"});
constexpr auto kDebertaV2Types = std::to_array<std::string_view>({"deberta-v2"});
}  // namespace

extern const Architecture kDeberta, kDebertaV2;
constexpr Architecture kDeberta = {
    .names = kDebertaV1Names,
    .model_types = kDebertaV1Types,
    .prefix = "deberta.",
    .read_config = read_deberta,
    .fields = kDebertaV1Fields,
    .tensors = kDebertaV1Tensors,
    .ignored = kDebertaIgnored,
    .heads = kDebertaHeads,
};
constexpr Architecture kDebertaV2 = {
    .names = kDebertaV2Names,
    .model_types = kDebertaV2Types,
    .prefix = "deberta.",
    .read_config = read_deberta_v2,
    .fields = kDebertaV2Fields,
    .tensors = kDebertaV2Tensors,
    .ignored = kDebertaIgnored,
    .heads = kDebertaHeads,
};

}  // namespace tgi
