// CTRL: GPT's block with positions that are sines and cosines, embeddings times the root of their
// width, and a bias of the head.
// Sources: models/ctrl in `transformers`, https://arxiv.org/abs/1909.05858.
#include <array>
#include <cmath>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

ModelConfig read_ctrl(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.hidden_size = "n_embd",
                                                   .num_layers = "n_layer",
                                                   .num_heads = "n_head",
                                                   .num_kv_heads = "",
                                                   .head_dim = "",
                                                   .intermediate_size = "dff",
                                                   .max_positions = "n_positions",
                                                   .norm_eps = "layer_norm_epsilon",
                                                   .activation = "",
                                                   .default_vocab_size = 246534,
                                                   .default_hidden_size = 1280,
                                                   .default_num_layers = 48,
                                                   .default_num_heads = 16,
                                                   .default_intermediate = 8192,
                                                   .default_max_positions = 256,
                                                   .default_norm_eps = 1e-6,
                                                   .default_activation = "relu",
                                                   .default_tied = true,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.norm_kind = NormKind::kLayer;
  model.gated_mlp = false;
  model.lm_head_bias = true;
  if (model.hidden_size < 2) check_size(config, "n_embd", 0, kMaxHiddenSize);
  model.sinusoids = {.steps = model.hidden_size / 2};
  model.embedding_multiplier = std::sqrt(static_cast<float>(model.hidden_size));
  return model;
}

constexpr auto kCtrlFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("n_embd"),
    read("dff"),
    read("n_layer"),
    read("n_head"),
    read("n_positions"),
    read_or_null("tie_word_embeddings"),
    // The layers' norms have it whatever it says.
    harmless_if("layer_norm_epsilon", "[1e-06]", "that is what all norms have"),
    harmless("n_ctx", "the context is that of n_positions"),
    harmless("summary_*", "is of another class"),
    harmless("resid_pdrop", kOnlyTraining),
    harmless("embd_pdrop", kOnlyTraining),
    harmless("attn_pdrop", kOnlyTraining),
    harmless("from_tf", "is of a conversion"),
});
constexpr auto kCtrlAliases = std::to_array<FieldAlias>({
    {"hidden_size", "n_embd"},
    {"num_hidden_layers", "n_layer"},
    {"num_attention_heads", "n_head"},
    {"max_position_embeddings", "n_positions"},
});

constexpr auto kCtrlNames = std::to_array<std::string_view>({"CTRLLMHeadModel"});
constexpr auto kCtrlTypes = std::to_array<std::string_view>({"ctrl"});

#define TGI_CTRL_LAYER "transformer.h.{layer}."
constexpr auto kCtrlTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.w.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.layernorm.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "transformer.layernorm.bias", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kLmHeadBias, "lm_head.bias", Dim::kOne, Dim::kVocab},
    {Role::kAttentionNorm, TGI_CTRL_LAYER "layernorm1.weight", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNormBias, TGI_CTRL_LAYER "layernorm1.bias", Dim::kOne, Dim::kHidden},
    {Role::kMlpNorm, TGI_CTRL_LAYER "layernorm2.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, TGI_CTRL_LAYER "layernorm2.bias", Dim::kOne, Dim::kHidden},
    {Role::kQ, TGI_CTRL_LAYER "multi_head_attention.Wq.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {Role::kQBias, TGI_CTRL_LAYER "multi_head_attention.Wq.bias", Dim::kOne, Dim::kQ, Split::kRows},
    {Role::kK, TGI_CTRL_LAYER "multi_head_attention.Wk.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kKBias, TGI_CTRL_LAYER "multi_head_attention.Wk.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kV, TGI_CTRL_LAYER "multi_head_attention.Wv.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kVBias, TGI_CTRL_LAYER "multi_head_attention.Wv.bias", Dim::kOne, Dim::kKv,
     Split::kRows},
    {Role::kO, TGI_CTRL_LAYER "multi_head_attention.dense.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kOBias, TGI_CTRL_LAYER "multi_head_attention.dense.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns},
    {Role::kUp, TGI_CTRL_LAYER "ffn.0.weight", Dim::kIntermediate, Dim::kHidden, Split::kRows},
    {Role::kUpBias, TGI_CTRL_LAYER "ffn.0.bias", Dim::kOne, Dim::kIntermediate, Split::kRows},
    {Role::kDown, TGI_CTRL_LAYER "ffn.2.weight", Dim::kHidden, Dim::kIntermediate, Split::kColumns},
    {Role::kDownBias, TGI_CTRL_LAYER "ffn.2.bias", Dim::kOne, Dim::kHidden, Split::kColumns},
});
#undef TGI_CTRL_LAYER
constexpr auto kCtrlIgnored = std::to_array<std::string_view>({"transformer.pos_encoding"});

}  // namespace

extern const Architecture kCtrl;
constexpr Architecture kCtrl = {
    .names = kCtrlNames,
    .model_types = kCtrlTypes,
    .prefix = "transformer.",
    .read_config = read_ctrl,
    .fields = kCtrlFields,
    .aliases = kCtrlAliases,
    .tensors = kCtrlTensors,
    .ignored = kCtrlIgnored,
};

}  // namespace tgi
