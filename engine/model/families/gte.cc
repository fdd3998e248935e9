// GTE since version 1.5, whose class is called New: BERT with rotated positions and gated MLPs. The
// class of `transformers` itself keeps the tensors' names, and rotates as all its classes do.
// Sources: models/gte in `transformers`; the classes' description in
// https://arxiv.org/abs/2407.19669 (mGTE), section 2, and the models' own config.json; the scaling
// of the positions: https://arxiv.org/abs/2309.00071, 3.1.
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr auto kGteFields = join_fields(
    std::to_array<KnownField>({
        harmless_if("position_embedding_type",
                    R"(["rope"])",
                    "positions are rotated, and no others are there"),
    }),
    join_fields(
        kBertFields,
        std::to_array<KnownField>({
            read("type_vocab_size"),
            read("rope_theta"),
            read_or_null("rope_scaling"),
            harmless_if("layer_norm_type", R"(["layer_norm"])", "norms are layer norms"),
            harmless_if("logn_attention_scale", "[false]", "scores are not scaled by the length"),
            harmless_if("logn_attention_clip1", "[false]", "scores are not scaled by the length"),
            harmless("pack_qkv", kSameSums),
            harmless("unpad_inputs", kSameSums),
            harmless("use_memory_efficient_attention", kSameSums),
        })));

// Of the class of `transformers`.
constexpr auto kOwnGteFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("position_embedding_type",
                                R"(["rope"])",
                                "positions are rotated, and no others are there"),
                }),
                join_fields(kBertFields,
                            std::to_array<KnownField>({
                                read("type_vocab_size"),
                                read_or_null("head_dim"),
                                read_or_null("rope_parameters"),
                                read_or_null("rope_scaling"),
                                read_or_null("rope_theta"),
                            })));

constexpr auto kScalingFields = std::to_array<KnownField>({
    read("type"),
    read("factor"),
    harmless_if("mixed_b", "[]", "all pairs are scaled alike"),
});

// The base grows by the factor, and all frequencies shrink by what makes the lowest one that of a
// context so many times as long.
void scale_rope(const JsonReader& scaling, int32_t head_dim, RopeSpec& rope) {
  refuse_unknown_fields(scaling, kScalingFields, {}, "the rope of GTE", "positions");
  const std::string type = scaling.string_or("type", "");
  if (type != "ntk") {
    throw Error(Code::kUnsupported, fmt::format("{}: '{}' is not supported; known is ntk",
                                                scaling.path_of("type"), type));
  }
  const double factor = scaling.optional_number("factor").value_or(0.0);
  if (!(factor >= 1.0) || !std::isfinite(factor)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 1 or more, got {}", scaling.path_of("factor"), factor));
  }
  const double dims = head_dim;
  const double base = static_cast<double>(rope.base) * factor;
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / dims;
    rope.inv_freq[i] = static_cast<float>(std::pow(base, -exponent) / std::pow(factor, 2.0 / dims));
  }
}

ModelConfig read_gated_bert(const JsonReader& config, const DecoderFields& fields) {
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.gated_mlp = true;
  // Older than the others', the file may have none.
  model.num_token_types = config.integer_or("type_vocab_size", 1) == 0
                              ? 0
                              : read_size(config, "type_vocab_size", 1, kMaxVocabSize);
  return model;
}

ModelConfig read_gte(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.default_vocab_size = 30528;
  ModelConfig model = read_gated_bert(config, fields);
  Json unscaled = config.json();
  unscaled.erase("rope_scaling");
  read_rope(JsonReader(unscaled, ""), model);
  if (config.has("rope_scaling")) {
    scale_rope(config.object("rope_scaling"), model.head_dim, model.ropes.front());
  }
  return model;
}

ModelConfig read_own_gte(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.head_dim = "head_dim";
  fields.default_vocab_size = 250048;
  fields.default_max_positions = 8192;
  ModelConfig model = read_gated_bert(config, fields);
  read_rope(config, model, {.default_theta = 160000.0});
  return model;
}

constexpr auto kGteNames = std::to_array<std::string_view>({"NewModel"});
constexpr auto kGteTypes = std::to_array<std::string_view>({"new"});
constexpr auto kOwnGteNames = std::to_array<std::string_view>({"GteModel"});
constexpr auto kOwnGteTypes = std::to_array<std::string_view>({"gte"});
// One checkpoint is more than one thing: weights of single tokens stand beside those of texts.
constexpr auto kGteIgnored = std::to_array<std::string_view>(
    {"embeddings.position_ids", "rotary_emb.inv_freq", "pooler.dense.weight", "pooler.dense.bias",
     "classifier.weight", "classifier.bias", "lm_head.*"});

constexpr auto kGteTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight", Dim::kTokenTypes,
     Dim::kHidden, Split::kNone, has_types},
    {Role::kEmbeddingNorm, "embeddings.LayerNorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "embeddings.LayerNorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNorm, "encoder.layer.{layer-1}.mlp_ln.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "encoder.layer.{layer-1}.mlp_ln.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kFinalNorm, "encoder.layer.{last}.mlp_ln.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "encoder.layer.{last}.mlp_ln.bias", Dim::kOne, Dim::kHidden},
    {Role::kQkv, "encoder.layer.{layer}.attention.qkv_proj.weight", Dim::kQkv, Dim::kHidden,
     Split::kRows},
    {Role::kQkvBias, "encoder.layer.{layer}.attention.qkv_proj.bias", Dim::kOne, Dim::kQkv,
     Split::kRows},
    {Role::kO, "encoder.layer.{layer}.attention.o_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, "encoder.layer.{layer}.attention.o_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kMlpNorm, "encoder.layer.{layer}.attn_ln.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "encoder.layer.{layer}.attn_ln.bias", Dim::kOne, Dim::kHidden},
    {Role::kGateUp, "encoder.layer.{layer}.mlp.up_gate_proj.weight", Dim::kUpGate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "encoder.layer.{layer}.mlp.down_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
    {Role::kDownBias, "encoder.layer.{layer}.mlp.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
});

// As `transformers` calls them within.
constexpr auto kGteRenames = std::to_array<TensorRename>({
    {"layers.", "encoder.layer."},
    {".self_attn.o_proj.", ".attention.o_proj."},
});

}  // namespace

extern const Architecture kGte, kOwnGte;
constexpr Architecture kGte = {
    .names = kGteNames,
    .model_types = kGteTypes,
    .prefix = "new.",
    .read_config = read_gte,
    .fields = kGteFields,
    .tensors = kGteTensors,
    .renames = kGteRenames,
    .ignored = kGteIgnored,
    .heads = kPoolerHeads,
};
constexpr Architecture kOwnGte = {
    .names = kOwnGteNames,
    .model_types = kOwnGteTypes,
    .prefix = "gte.",
    .read_config = read_own_gte,
    .fields = kOwnGteFields,
    .tensors = kGteTensors,
    .renames = kGteRenames,
    .ignored = kGteIgnored,
    .heads = kPoolerHeads,
};

}  // namespace tgi
