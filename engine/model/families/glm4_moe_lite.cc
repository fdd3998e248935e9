// GLM 4.7 Flash: DeepSeek V3's latent attention and experts. The layer that predicts a second token
// may draft. Source: models/glm4_moe_lite in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/next_tokens.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_glm4_moe_lite(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 154880,
                                                         .default_hidden_size = 2048,
                                                         .default_num_layers = 47,
                                                         .default_num_heads = 20,
                                                         .default_intermediate = 10240,
                                                         .default_max_positions = 202752,
                                                         .default_norm_eps = 1e-5,
                                                         .default_bos = 0,
                                                         .default_eos = 1}));
  read_latent_attention(
      config, {.default_query_rank = 768, .default_kept_dim = 192, .default_value_dim = 256},
      {.interleaved = rotates_pairs(config)}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 64,
                         .default_top_k = 4,
                         .default_intermediate = 1536,
                         .default_scale = 1.8},
                        model);
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 1, model);
  return model;
}

constexpr auto kGlm4MoeLiteFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("rope_interleave"),
                    read_or_null("mlp_layer_types"),
                    harmless("num_nextn_predict_layers", kOnlyDrafts),
                }),
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kGlm4MoeLiteAliases =
    std::to_array<FieldAlias>({kDeepSeekExpertAliases[0], {"head_dim", "qk_rope_head_dim"}});

constexpr auto kGlm4MoeLiteNames = std::to_array<std::string_view>({"Glm4MoeLiteForCausalLM"});
constexpr auto kGlm4MoeLiteTypes = std::to_array<std::string_view>({"glm4_moe_lite"});

constexpr auto kGlm4MoeLiteTensors = join_tensors(kLlamaOuterTensors,
                                                  kLlamaNormTensors,
                                                  kLatentAttentionTensors,
                                                  kLlamaMlpTensors,
                                                  kExpertTensors,
                                                  kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kGlm4MoeLite;
constexpr Architecture kGlm4MoeLite = {
    .names = kGlm4MoeLiteNames,
    .model_types = kGlm4MoeLiteTypes,
    .prefix = "model.",
    .read_config = read_glm4_moe_lite,
    .fields = kGlm4MoeLiteFields,
    .aliases = kGlm4MoeLiteAliases,
    .tensors = kGlm4MoeLiteTensors,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
    .next_tokens = &kDeepSeekNextTokens,
};

}  // namespace tgi
