// EXAONE 3 and 3.5: Llama's block under other names. Source: models/exaone in `transformers`, and
// what the published files call their tensors.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_exaone(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 102400,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 14336,
                                                   .default_max_positions = 4096,
                                                   .default_norm_eps = 1e-5,
                                                   .default_eos = 361});
  read_rope(config, model, {.default_theta = 500000.0});
  refuse_windows(config, model);
  return model;
}

constexpr auto kExaoneFields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("layer_types"),
                    read_or_null("sliding_window"),
                    read_or_null("use_sliding_window"),
                    harmless_if("attention_bias", "[false]", "there are no biases of attention"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless("embed_dropout", kOnlyTraining),
                }));

constexpr auto kExaoneAliases = std::to_array<FieldAlias>({{"num_layers", "num_hidden_layers"},
                                                           {"layer_norm_epsilon", "rms_norm_eps"},
                                                           {"activation_function", "hidden_act"}});

constexpr auto kExaoneNames = std::to_array<std::string_view>({"ExaoneForCausalLM"});
constexpr auto kExaoneTypes = std::to_array<std::string_view>({"exaone"});

constexpr auto kExaoneTensors = std::to_array<TensorSpec>({
    {Role::kTokenEmbedding, "transformer.wte.weight", Dim::kVocab, Dim::kHidden},
    {Role::kFinalNorm, "transformer.ln_f.weight", Dim::kOne, Dim::kHidden},
    {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
    {Role::kAttentionNorm, "transformer.h.{layer}.ln_1.weight", Dim::kOne, Dim::kHidden},
    {Role::kQ, "transformer.h.{layer}.attn.attention.q_proj.weight", Dim::kQ, Dim::kHidden,
     Split::kRows},
    {Role::kK, "transformer.h.{layer}.attn.attention.k_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kV, "transformer.h.{layer}.attn.attention.v_proj.weight", Dim::kKv, Dim::kHidden,
     Split::kRows},
    {Role::kO, "transformer.h.{layer}.attn.attention.out_proj.weight", Dim::kHidden, Dim::kQ,
     Split::kColumns},
    {Role::kMlpNorm, "transformer.h.{layer}.ln_2.weight", Dim::kOne, Dim::kHidden},
    {Role::kGate, "transformer.h.{layer}.mlp.c_fc_0.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kUp, "transformer.h.{layer}.mlp.c_fc_1.weight", Dim::kIntermediate, Dim::kHidden,
     Split::kRows},
    {Role::kDown, "transformer.h.{layer}.mlp.c_proj.weight", Dim::kHidden, Dim::kIntermediate,
     Split::kColumns},
});

// Published files carry the one table of rotations.
constexpr auto kExaoneIgnored =
    std::to_array<std::string_view>({".rotary.inv_freq", ".rotary_emb.inv_freq"});

// As `transformers` calls them within.
constexpr auto kExaoneRenames = std::to_array<TensorRename>({
    {"model.layers.", "transformer.h."},
    {"model.embed_tokens.", "transformer.wte."},
    {"model.norm.", "transformer.ln_f."},
    {".input_layernorm.", ".ln_1."},
    {".post_attention_layernorm.", ".ln_2."},
    {".self_attn.o_proj.", ".attn.attention.out_proj."},
    {".self_attn.", ".attn.attention."},
    {".mlp.gate_proj.", ".mlp.c_fc_0."},
    {".mlp.up_proj.", ".mlp.c_fc_1."},
    {".mlp.down_proj.", ".mlp.c_proj."},
});

}  // namespace

extern const Architecture kExaone;
constexpr Architecture kExaone = {
    .names = kExaoneNames,
    .model_types = kExaoneTypes,
    .computed_by = "LlamaForCausalLM",
    .prefix = "transformer.",
    .read_config = read_exaone,
    .fields = kExaoneFields,
    .aliases = kExaoneAliases,
    .tensors = kExaoneTensors,
    .renames = kExaoneRenames,
    .ignored = kExaoneIgnored,
};

}  // namespace tgi
