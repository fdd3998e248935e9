// DeepSeek V3.2 and GLM 5: DeepSeek V3's latent attention and experts, with an indexer in a layer
// that chooses the `index_topk` tokens that a later one sees; in GLM 5 some layers see what the one
// before them chose. The layer that predicts a second token may draft. Source: models/deepseek_v32
// and models/glm_moe_dsa in `transformers`, https://arxiv.org/abs/2512.02556.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/indexer_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/next_tokens.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

void read_layers_with_experts(const JsonReader& config, ModelConfig& model) {
  if (!read_mlp_layer_types(config, model)) read_first_sparse_layer(config, 3, model);
}

ModelConfig read_deepseek_v32(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 129280,
                                                         .default_hidden_size = 7168,
                                                         .default_num_layers = 61,
                                                         .default_num_heads = 128,
                                                         .default_intermediate = 18432,
                                                         .default_max_positions = 163840,
                                                         .default_bos = 0,
                                                         .default_eos = 1}));
  read_latent_attention(config, {}, {.interleaved = true}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 256,
                         .default_top_k = 8,
                         .default_intermediate = 2048,
                         .default_num_groups = 8,
                         .default_top_groups = 4,
                         .default_scale = 2.5},
                        model);
  read_layers_with_experts(config, model);
  read_sparse_attention(config, {}, false, model);
  for (LayerPlan& layer : model.layers) layer.seen = SeenTokens::kOwnChoice;
  return model;
}

ModelConfig read_glm_moe_dsa(const JsonReader& config) {
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 154880,
                                                         .default_hidden_size = 6144,
                                                         .default_num_layers = 78,
                                                         .default_num_heads = 64,
                                                         .default_intermediate = 12288,
                                                         .default_max_positions = 202752,
                                                         .default_norm_eps = 1e-5,
                                                         .default_bos = 0,
                                                         .default_eos = 1}));
  read_latent_attention(
      config, {.default_query_rank = 2048, .default_kept_dim = 192, .default_value_dim = 256},
      {.interleaved = true}, model);
  read_deepseek_experts(config,
                        {.default_num_experts = 256,
                         .default_top_k = 8,
                         .default_intermediate = 2048,
                         .default_scale = 2.5},
                        model);
  read_layers_with_experts(config, model);
  read_sparse_attention(config, {.default_num_heads = 32}, true, model);
  read_indexer_types(config, model);
  return model;
}

constexpr auto kDsaCommonFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("rope_interleave", "[true]", "pairs of a head are rotated"),
                    harmless("ep_size", "says how training dealt out the experts"),
                }),
                kSparseAttentionFields,
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

// An indexer in each layer, whose halves of a head are rotated.
constexpr auto kDsaFields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("indexer_types", R"(["full"])", "all layers choose"),
                    harmless_if("index_topk_freq", "[1]", "all layers choose"),
                    harmless("index_skip_topk_offset", "all layers choose"),
                    harmless_if("indexer_rope_interleave", "[false]", "halves are rotated"),
                }),
                kDsaCommonFields);
constexpr auto kGlmMoeDsaFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("indexer_types"),
                    read_or_null("index_topk_pattern"),
                    read_or_null("index_topk_freq"),
                    read_or_null("index_skip_topk_offset"),
                    harmless_if("indexer_rope_interleave", "[true]", "pairs are rotated"),
                }),
                kDsaCommonFields);

constexpr auto kDeepseekV32Names = std::to_array<std::string_view>({"DeepseekV32ForCausalLM"});
constexpr auto kDeepseekV32Types = std::to_array<std::string_view>({"deepseek_v32"});
constexpr auto kGlmMoeDsaNames = std::to_array<std::string_view>({"GlmMoeDsaForCausalLM"});
constexpr auto kGlmMoeDsaTypes = std::to_array<std::string_view>({"glm_moe_dsa"});

constexpr auto kDsaTensors = join_tensors(kLlamaOuterTensors,
                                          kLlamaNormTensors,
                                          kLatentAttentionTensors,
                                          kSparseAttentionTensors,
                                          kLlamaMlpTensors,
                                          kExpertTensors,
                                          kDeepSeekExpertTensors);

constexpr auto kDsaNotDrafted = with_indexer_tensors(kDeepSeekCopies);
constexpr NextTokenNames kDsaNextTokens = [] {
  NextTokenNames names = kDeepSeekNextTokens;
  names.copies = kDsaNotDrafted;
  return names;
}();

}  // namespace

extern const Architecture kDeepSeekV32;
constexpr Architecture kDeepSeekV32 = {
    .names = kDeepseekV32Names,
    .model_types = kDeepseekV32Types,
    .prefix = "model.",
    .read_config = read_deepseek_v32,
    .fields = kDsaFields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kDsaTensors,
    .ignored = kIndexerTensorsWithoutChoice,
    .ignores_layer_after_last = true,
    .next_tokens = &kDsaNextTokens,
};

extern const Architecture kGlmMoeDsa;
constexpr Architecture kGlmMoeDsa = {
    .names = kGlmMoeDsaNames,
    .model_types = kGlmMoeDsaTypes,
    .prefix = "model.",
    .read_config = read_glm_moe_dsa,
    .fields = kGlmMoeDsaFields,
    .aliases = kDeepSeekExpertAliases,
    .tensors = kDsaTensors,
    .ignored = kIndexerTensorsWithoutChoice,
    .ignores_layer_after_last = true,
    .next_tokens = &kDsaNextTokens,
};

}  // namespace tgi
