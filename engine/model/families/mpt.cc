// MPT: ALiBi, norms without a bias, q, k and v in one matrix and held within limits if asked for.
// Source: models/mpt in `transformers`.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "engine/model/alibi.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

constexpr std::string_view kMptRunner = "is about how the training code runs the model";

constexpr auto kMptFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("d_model"),
    read("n_layers"),
    read("n_heads"),
    read("max_seq_len"),
    read("layer_norm_epsilon"),
    read_or_null("tie_word_embeddings"),
    read_or_null("attn_config"),
    harmless_if("expansion_ratio", "[4]", "the MLP is four times as wide as the stream"),
    harmless("learned_pos_emb", "positions are ALiBi, and then there are no such embeddings"),
    harmless("embedding_fraction", kOnlyTraining),
    harmless("emb_pdrop", kOnlyTraining),
    harmless("init_config", kOnlyTraining),
    harmless("init_device", kMptRunner),
    harmless("verbose", kMptRunner),
    harmless("tokenizer_name", "the tokenizer's own files say it"),
    harmless_if("no_bias", "[true]", "there are no biases"),
    harmless_if("norm_type",
                R"(["low_precision_layernorm", "layernorm"])",
                "norms are LayerNorms, in float32"),
    harmless_if("logit_scale", "[]", "logits are not scaled"),
});

constexpr auto kMptAttentionFields = std::to_array<KnownField>({
    read_or_null("clip_qkv"),
    read_or_null("softmax_scale"),
    harmless("attn_impl", kSameSums),
    harmless("attn_pdrop", kOnlyTraining),
    harmless("tie_word_embeddings", "it is said outside"),
    harmless_if("alibi", "[true]", "positions are ALiBi"),
    harmless_if("alibi_bias_max",
                "[8]",
                "the original code takes it, transformers takes 8 whatever it says"),
    harmless_if("attn_type", R"(["multihead_attention"])", "every head has its own key and value"),
    harmless_if("attn_uses_sequence_id", "[false]", "a row of tokens is one text"),
    harmless_if("prefix_lm", "[false]", "attention is causal"),
    harmless_if("qk_ln", "[false]", "there is no norm of q and k"),
});

// 0 where the field is null or absent.
float read_limit(const JsonReader& config, std::string_view key) {
  const double value = config.number_or(key, 0.0);
  if (config.has(key) && (!(value > 0.0) || !std::isfinite(value))) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a number above 0, got {}", config.path_of(key), value));
  }
  return static_cast<float>(value);
}

void read_attn_config(const JsonReader& config, ModelConfig& model) {
  refuse_unknown_fields(config, kMptAttentionFields, generic_fields(), "MPT's attention");
  model.qkv_clip = read_limit(config, "clip_qkv");
  if (config.has("softmax_scale")) model.attention_scale = read_limit(config, "softmax_scale");
  model.alibi_slopes = alibi_slopes_of_upper_power(model.num_heads);
}

ModelConfig read_mpt(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.hidden_size = "d_model",
                                                   .num_layers = "n_layers",
                                                   .num_heads = "n_heads",
                                                   .num_kv_heads = "",
                                                   .head_dim = "",
                                                   .intermediate_size = "",
                                                   .max_positions = "max_seq_len",
                                                   .norm_eps = "layer_norm_epsilon",
                                                   .activation = "",
                                                   .default_vocab_size = 50368,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 24,
                                                   .default_num_heads = 16,
                                                   .default_intermediate = 0,
                                                   .default_norm_eps = 1e-5,
                                                   .default_activation = "gelu",
                                                   .default_tied = true,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  const Json none = Json::object();
  read_attn_config(config.has("attn_config") ? config.object("attn_config")
                                             : JsonReader(none, config.path_of("attn_config")),
                   model);
  return model;
}

constexpr auto kMptNames = std::to_array<std::string_view>({"MPTForCausalLM", "MptForCausalLM"});
constexpr auto kMptTypes = std::to_array<std::string_view>({"mpt"});

constexpr auto kMptAliases = std::to_array<FieldAlias>({
    {"hidden_size", "d_model"},
    {"num_hidden_layers", "n_layers"},
    {"num_attention_heads", "n_heads"},
});

constexpr auto kMptTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.wte.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.norm_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.blocks.{layer}.norm_1.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNorm, "transformer.blocks.{layer}.norm_2.weight", Dim::kOne, Dim::kHidden},
    {Role::kQkv, "transformer.blocks.{layer}.attn.Wqkv.weight", Dim::kQkv, Dim::kHidden,
     Split::kRows},
    {Role::kO, "transformer.blocks.{layer}.attn.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kUp, "transformer.blocks.{layer}.ffn.up_proj.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "transformer.blocks.{layer}.ffn.down_proj.weight", Dim::kHidden,
     Dim::kIntermediate, Split::kColumns},
});

}  // namespace

extern const Architecture kMpt;
constexpr Architecture kMpt = {
    .names = kMptNames,
    .model_types = kMptTypes,
    .prefix = "transformer.",
    .read_config = read_mpt,
    .fields = kMptFields,
    .aliases = kMptAliases,
    .tensors = kMptTensors,
    .ignored = {},
};

}  // namespace tgi
