// A.X K1: DeepSeek V3's latent attention and experts, and a norm of what experts give together.
// Source: models/axk1 in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_ax_k1(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 163840,
                                                         .default_hidden_size = 7168,
                                                         .default_num_layers = 61,
                                                         .default_num_heads = 64,
                                                         .default_intermediate = 18432,
                                                         .default_max_positions = 32768,
                                                         .default_bos = 163691,
                                                         .default_eos = 163691}));
  read_latent_attention(config, {}, {.interleaved = rotates_pairs(config)}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 192,
                         .default_top_k = 8,
                         .default_intermediate = 2048,
                         .default_num_groups = 8,
                         .default_top_groups = 4,
                         .default_scale = 2.5},
                        model);
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 1, model);
  return model;
}

constexpr auto kAxK1Fields =
    join_fields(std::to_array<KnownField>({
                    read("q_lora_rank"),
                    read_or_null("rope_interleave"),
                    read_or_null("mlp_layer_types"),
                    read_or_null("first_k_dense_replace"),
                    harmless("num_nextn_predict_layers", kOnlyDrafts),
                    harmless("ep_size", "says how training dealt out the experts"),
                }),
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kAxK1Names = std::to_array<std::string_view>({"AXK1ForCausalLM"});
constexpr auto kAxK1Types = std::to_array<std::string_view>({"axk1", "AXK1"});

constexpr auto kAxK1Tensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLatentAttentionTensors,
                 kLlamaMlpTensors,
                 kExpertTensors,
                 kDeepSeekExpertTensors,
                 std::to_array<TensorSpec>({
                     {Role::kMlpPostNorm, "model.layers.{layer}.post_mlp_layernorm.weight",
                      Dim::kOne, Dim::kHidden, Split::kNone, has_experts},
                 }));

// Published files have that norm in layers without experts too, where nothing reads it.
constexpr auto kAxK1Ignored =
    std::to_array<std::string_view>({".rotary_emb.inv_freq", ".post_mlp_layernorm.weight"});

}  // namespace

extern const Architecture kAxK1;
constexpr Architecture kAxK1 = {
    .names = kAxK1Names,
    .model_types = kAxK1Types,
    .prefix = "model.",
    .read_config = read_ax_k1,
    .fields = kAxK1Fields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kAxK1Tensors,
    .may_lack_choice_bias = true,
    .ignored = kAxK1Ignored,
    .ignores_layer_after_last = true,
};

}  // namespace tgi
