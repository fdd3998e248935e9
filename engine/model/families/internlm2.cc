// InternLM 2 and 2.5: Llama's block under other names, one matrix that keeps what belongs to a KV
// head together.
// Source: modeling_internlm2.py of the published models.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_internlm2(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.head_dim = "", .default_vocab_size = 103168});
  model.attention_bias = config.boolean_or("bias", true);
  read_rope(config, model);
  return model;
}

constexpr auto kInternlm2Fields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read_or_null("num_key_value_heads"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("rms_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read("rope_theta"),
    read_or_null("rope_scaling"),
    read("bias"),
});

constexpr auto kInternlm2Names = std::to_array<std::string_view>({"InternLM2ForCausalLM"});
constexpr auto kInternlm2Types = std::to_array<std::string_view>({"internlm2"});

constexpr auto kInternlm2Tensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "model.tok_embeddings.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "output.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "model.layers.{layer}.attention_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kMlpNorm, "model.layers.{layer}.ffn_norm.weight", Dim::kOne, Dim::kHidden},
    {Role::kQkv, "model.layers.{layer}.attention.wqkv.weight", Dim::kQkvByKvHead, Dim::kHidden,
     Split::kRows},
    {Role::kQkvBias, "model.layers.{layer}.attention.wqkv.bias", Dim::kOne, Dim::kQkvByKvHead,
     Split::kRows, has_attention_bias},
    {Role::kO, "model.layers.{layer}.attention.wo.weight", Dim::kHidden, Dim::kQ, Split::kColumns},
    {Role::kOBias, "model.layers.{layer}.attention.wo.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_attention_bias},
    {Role::kGate, "model.layers.{layer}.feed_forward.w1.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUp, "model.layers.{layer}.feed_forward.w3.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "model.layers.{layer}.feed_forward.w2.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

}  // namespace

extern const Architecture kInternlm2;
constexpr Architecture kInternlm2 = {
    .names = kInternlm2Names,
    .model_types = kInternlm2Types,
    .prefix = "model.",
    .read_config = read_internlm2,
    .fields = kInternlm2Fields,
    .tensors = kInternlm2Tensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
