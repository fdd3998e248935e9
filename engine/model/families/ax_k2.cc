// A.X K2: DeepSeek V3.2's latent attention, indexer and experts. q and gates of what is attended to
// are made of the queries' short row as it was and normed, and what the norms before the branches
// give is gated through a short row of its own, before experts and attention. Source: models/axk2
// in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/indexer_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_ax_k2(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 163840,
                                                         .default_hidden_size = 2048,
                                                         .default_num_layers = 48,
                                                         .default_num_heads = 32,
                                                         .default_intermediate = 5120,
                                                         .default_max_positions = 131072,
                                                         .default_bos = 163691,
                                                         .default_eos = 163691},
                                                        32));
  read_latent_attention(config,
                        {.default_rank = 128,
                         .default_query_rank = 384,
                         .default_kept_dim = 64,
                         .default_rotary_dim = 32,
                         .default_value_dim = 64},
                        {.interleaved = true}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 128,
                         .default_top_k = 8,
                         .default_intermediate = 512,
                         .default_scale = 2.5},
                        model);
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 1, model);
  read_sparse_attention(config, {.default_num_heads = 16}, false, model);
  for (LayerPlan& layer : model.layers) layer.seen = SeenTokens::kOwnChoice;
  model.norm_gate_rank = read_size(config, "gated_norm_rank", 16, kMaxHiddenSize);
  model.has_output_gate = true;
  model.latent.gates_values = true;
  model.latent.reads_row_twice = true;
  return model;
}

constexpr auto kAxK2Fields =
    join_fields(std::to_array<KnownField>({
                    read("gated_norm_rank"),
                    read_or_null("n_group"),
                    read_or_null("topk_group"),
                    read_or_null("first_k_dense_replace"),
                    harmless_if("rope_interleave", "[true]", "pairs of a head are rotated"),
                    harmless("ep_size", "says how training dealt out the experts"),
                }),
                kSparseAttentionFields,
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kAxK2Names = std::to_array<std::string_view>({"AXK2ForCausalLM"});
constexpr auto kAxK2Types = std::to_array<std::string_view>({"axk2", "AXK2"});

constexpr auto kAxK2CommonTensors = join_tensors(
    kLlamaOuterTensors,
    kLatentRowTensors,
    kSparseAttentionTensors,
    kLlamaMlpTensors,
    kDeepSeekExpertTensors,
    std::to_array<TensorSpec>({
        {Role::kQ, "model.layers.{layer}.self_attn.q_b_proj.weight", Dim::kLatentQGates,
         Dim::kQueryPair, Split::kRows},
        {.role = Role::kValueGate,
         .name = "model.layers.{layer}.self_attn.q_b_proj.weight",
         .rows = Dim::kLatentGatesOfQ,
         .cols = Dim::kQueryPair,
         .split = Split::kRows,
         .is_counted = false},
        {Role::kAttentionNorm, "model.layers.{layer}.input_layernorm.norm.weight", Dim::kOne,
         Dim::kHidden},
        {Role::kAttentionNormGateIn, "model.layers.{layer}.input_layernorm.W_down.weight",
         Dim::kNormGateRank, Dim::kHidden},
        {Role::kAttentionNormGateOut, "model.layers.{layer}.input_layernorm.W_up.weight",
         Dim::kHidden, Dim::kNormGateRank},
        {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, has_dense_mlp},
        {Role::kMlpNorm, "model.layers.{layer}.post_attention_layernorm.norm.weight", Dim::kOne,
         Dim::kHidden, Split::kNone, has_experts},
        {Role::kMlpNormGateIn, "model.layers.{layer}.post_attention_layernorm.W_down.weight",
         Dim::kNormGateRank, Dim::kHidden, Split::kNone, has_experts},
        {Role::kMlpNormGateOut, "model.layers.{layer}.post_attention_layernorm.W_up.weight",
         Dim::kHidden, Dim::kNormGateRank, Split::kNone, has_experts},
    }));
constexpr auto kAxK2Tensors = join_tensors(kAxK2CommonTensors, kStackedExpertTensors);
// Published ones.
constexpr auto kAxK2SeparateTensors = join_tensors(kAxK2CommonTensors, kExpertTensors);

// As `transformers` calls them within.
constexpr auto kAxK2Renames = std::to_array<TensorRename>({
    {".self_attn.q_gate_proj.", ".self_attn.q_b_proj."},
    {"layernorm.mlp.fc1.", "layernorm.W_down."},
    {"layernorm.mlp.fc2.", "layernorm.W_up."},
});

}  // namespace

extern const Architecture kAxK2;
constexpr Architecture kAxK2 = {
    .names = kAxK2Names,
    .model_types = kAxK2Types,
    .prefix = "model.",
    .read_config = read_ax_k2,
    .fields = kAxK2Fields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kAxK2Tensors,
    .tensors_of_separate_experts = kAxK2SeparateTensors,
    .renames = kAxK2Renames,
    .ignored = kIndexerTensorsWithoutChoice,
    .ignores_layer_after_last = true,
};

}  // namespace tgi
