// Nomic BERT: BERT with rotated positions, gated MLPs and no biases.
// Sources: models/nomic_bert in `transformers`, https://arxiv.org/abs/2402.01613.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/families/bert_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kNoBiases = "linears have no biases";

constexpr auto kNomicFields = join_fields(
    kBertFields,
    std::to_array<KnownField>({
        read("type_vocab_size"),
        read_or_null("head_dim"),
        read_or_null("rope_parameters"),
        read_or_null("rope_scaling"),
        read_or_null("rope_theta"),
        // Of the class that came with the weights.
        harmless_if("activation_function", R"(["swiglu"])", "MLPs are gated by silu"),
        harmless_if("qkv_proj_bias", "[false]", kNoBiases),
        harmless_if("mlp_fc1_bias", "[false]", kNoBiases),
        harmless_if("mlp_fc2_bias", "[false]", kNoBiases),
        harmless_if("prenorm", "[false]", "norms stand behind the branches"),
        harmless_if("use_rms_norm", "[false]", "norms are layer norms"),
        harmless_if("parallel_block", "[false]", "branches follow each other"),
        harmless_if("parallel_block_tied_norm", "[false]", "branches follow each other"),
        harmless_if("causal", "[false]", "all tokens see each other"),
        harmless_if("rotary_emb_fraction", "[1.0, 1]", "whole heads are rotated"),
        harmless_if("rotary_emb_interleaved", "[false]", "halves of a head are rotated"),
        harmless_if("rotary_emb_scale_base", "[]", "rotations are not scaled"),
        harmless_if("rotary_scaling_factor", "[]", "rotations are not scaled"),
        harmless_if("scale_attn_weights", "[true]", "scores are scaled"),
        harmless_if("scale_attn_by_inverse_layer_idx", "[false]", "scores are scaled alike"),
        harmless("max_trained_positions", "longer texts are taken all the same"),
        harmless("reorder_and_upcast_attn", kSameSums),
        harmless("fused_*", kSameSums),
        harmless("use_xentropy", kSameSums),
        harmless("dense_seq_output", kSameSums),
        harmless("last_layer_subset", kSameSums),
        harmless("pad_vocab_size_multiple", "vocab_size counts those rows"),
        harmless("summary_*", "is of another class than those of one text or pair"),
    }));

constexpr auto kNomicAliases = std::to_array<FieldAlias>({
    {"n_embd", "hidden_size"},
    {"n_head", "num_attention_heads"},
    {"n_layer", "num_hidden_layers"},
    {"n_inner", "intermediate_size"},
    {"n_positions", "max_position_embeddings"},
    {"layer_norm_epsilon", "layer_norm_eps"},
    {"rotary_emb_base", "rope_theta"},
});

ModelConfig read_nomic_bert(const JsonReader& config) {
  DecoderFields fields = kBertDecoderFields;
  fields.head_dim = "head_dim";
  fields.default_vocab_size = 30528;
  fields.default_max_positions = 2048;
  fields.default_activation = "silu";
  ModelConfig model = read_decoder_config(config, fields);
  make_post_norm_encoder(model);
  model.gated_mlp = true;
  model.num_token_types = read_size(config, "type_vocab_size", 2, kMaxVocabSize);
  read_rope(config, model, {.default_theta = 1000.0});
  return model;
}

constexpr auto kNomicNames = std::to_array<std::string_view>({"NomicBertModel"});
constexpr auto kNomicTypes = std::to_array<std::string_view>({"nomic_bert"});
constexpr auto kNomicTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "embeddings.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kTypeEmbedding, "embeddings.token_type_embeddings.weight", Dim::kTokenTypes,
     Dim::kHidden},
    {Role::kEmbeddingNorm, "emb_ln.weight", Dim::kOne, Dim::kHidden},
    {Role::kEmbeddingNormBias, "emb_ln.bias", Dim::kOne, Dim::kHidden},
    {Role::kAttentionNorm, "encoder.layers.{layer-1}.norm2.weight", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kAttentionNormBias, "encoder.layers.{layer-1}.norm2.bias", Dim::kOne, Dim::kHidden,
     Split::kNone, is_not_first},
    {Role::kFinalNorm, "encoder.layers.{last}.norm2.weight", Dim::kOne, Dim::kHidden},
    {Role::kFinalNormBias, "encoder.layers.{last}.norm2.bias", Dim::kOne, Dim::kHidden},
    {Role::kQkv, "encoder.layers.{layer}.attn.Wqkv.weight", Dim::kQkv, Dim::kHidden, Split::kRows},
    {Role::kO, "encoder.layers.{layer}.attn.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kMlpNorm, "encoder.layers.{layer}.norm1.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNormBias, "encoder.layers.{layer}.norm1.bias", Dim::kOne, Dim::kHidden},
    {Role::kGate, "encoder.layers.{layer}.mlp.fc12.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUp, "encoder.layers.{layer}.mlp.fc11.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "encoder.layers.{layer}.mlp.fc2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

// As `transformers` calls them within, and the model in front of a head.
constexpr auto kNomicRenames = std::to_array<TensorRename>({
    {"nomic_bert.", "bert."},
    {".self_attn.o_proj.", ".attn.out_proj."},
    {".mlp.gate_proj.", ".mlp.fc12."},
    {".mlp.up_proj.", ".mlp.fc11."},
    {".mlp.down_proj.", ".mlp.fc2."},
});

}  // namespace

extern const Architecture kNomicBert;
constexpr Architecture kNomicBert = {
    .names = kNomicNames,
    .model_types = kNomicTypes,
    .prefix = "bert.",
    .read_config = read_nomic_bert,
    .fields = kNomicFields,
    .aliases = kNomicAliases,
    .tensors = kNomicTensors,
    .renames = kNomicRenames,
    .ignored = kBertIgnored,
    .heads = kPoolerHeads,
};

}  // namespace tgi
