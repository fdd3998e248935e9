// DeepSeek V3, V3.1 and R1, Kimi K2 and Moonlight: latent attention and, behind the first layers,
// experts that are chosen by sigmoids with a bias, from the groups with the best two. The layer
// that predicts a second token may draft. Source: models/deepseek_v3 in `transformers`.
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

ModelConfig read_deepseek_v3(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 129280,
                                                         .default_hidden_size = 7168,
                                                         .default_num_layers = 61,
                                                         .default_num_heads = 128,
                                                         .default_intermediate = 18432,
                                                         .default_max_positions = 4096,
                                                         .default_bos = 0,
                                                         .default_eos = 1}));
  read_latent_attention(config, {}, {.interleaved = rotates_pairs(config)}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 256,
                         .default_top_k = 8,
                         .default_intermediate = 2048,
                         .default_num_groups = 8,
                         .default_top_groups = 4,
                         .default_scale = 2.5},
                        model);
  read_first_sparse_layer(config, 3, model);
  return model;
}

constexpr auto kDeepseekV3Fields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("rope_interleave"),
                    harmless("num_nextn_predict_layers", kOnlyDrafts),
                    harmless("ep_size", "says how training dealt out the experts"),
                }),
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kDeepseekV3Aliases = std::to_array<FieldAlias>(
    {kDeepSeekExpertAliases[0], {"num_mtp_layers", "num_nextn_predict_layers"}});

constexpr auto kDeepseekV3Names = std::to_array<std::string_view>({"DeepseekV3ForCausalLM"});
constexpr auto kDeepseekV3Types = std::to_array<std::string_view>({"deepseek_v3", "kimi_k2"});

constexpr auto kDeepseekV3Tensors = join_tensors(kLlamaOuterTensors,
                                                 kLlamaNormTensors,
                                                 kLatentAttentionTensors,
                                                 kLlamaMlpTensors,
                                                 kExpertTensors,
                                                 kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kDeepSeekV3;
constexpr Architecture kDeepSeekV3 = {
    .names = kDeepseekV3Names,
    .model_types = kDeepseekV3Types,
    .prefix = "model.",
    .read_config = read_deepseek_v3,
    .fields = kDeepseekV3Fields,
    .aliases = kDeepseekV3Aliases,
    .tensors = kDeepseekV3Tensors,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
    .next_tokens = &kDeepSeekNextTokens,
};

}  // namespace tgi
