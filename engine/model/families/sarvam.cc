// Sarvam: Llama's attention with norms of the heads of q and k, and behind the first layers
// DeepSeek's experts; the larger one has DeepSeek V3's latent attention. Ling and Ring 2.0 are the
// first with half of a head rotated. Source: models/sarvam_moe and models/sarvam_mla in
// `transformers`, and what the published files call their tensors.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/families/ling_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/latent_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_sarvam_moe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 262144,
                                                   .default_num_layers = 19,
                                                   .default_num_heads = 64,
                                                   .default_num_kv_heads = 4,
                                                   .default_head_dim = 64,
                                                   .default_intermediate = 8192,
                                                   .default_max_positions = 131072,
                                                   .default_bos = -1,
                                                   .default_eos = 1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.has_qk_norm = config.boolean_or("use_qk_norm", true);
  read_rope(config, model, {.default_theta = 8e6, .takes_partial = true});
  read_deepseek_experts(config,
                        {.default_num_experts = 128,
                         .default_top_k = 6,
                         .default_intermediate = 1024,
                         .default_scale = 2.5},
                        model);
  read_first_sparse_layer(config, 1, model);
  return model;
}

// Older files call yarn otherwise.
Json with_yarn(const Json& config) {
  Json out = config;
  const auto scaling = out.find("rope_scaling");
  if (scaling == out.end() || !scaling->is_object()) return out;
  for (const char* key : {"type", "rope_type"}) {
    const auto type = scaling->find(key);
    if (type != scaling->end() && *type == "deepseek_yarn") *type = "yarn";
  }
  return out;
}

ModelConfig read_sarvam_mla(const JsonReader& given) {
  const Json json = with_yarn(given.json());
  const JsonReader config(json, "");
  ModelConfig model =
      read_decoder_config(config, latent_decoder_fields({.default_vocab_size = 262144,
                                                         .default_num_heads = 64,
                                                         .default_intermediate = 16384,
                                                         .default_max_positions = 4096,
                                                         .default_bos = 0,
                                                         .default_eos = 1}));
  read_latent_attention(config, {.default_query_rank = 0}, {.interleaved = rotates_pairs(config)},
                        model);
  read_deepseek_experts(config,
                        {.default_num_experts = 128,
                         .default_top_k = 8,
                         .default_intermediate = 2048,
                         .default_scale = 2.5},
                        model);
  read_first_sparse_layer(config, 1, model);
  return model;
}

constexpr auto kSarvamMoeFields = join_fields(std::to_array<KnownField>({
                                                  read_or_null("attention_bias"),
                                                  read("use_qk_norm"),
                                              }),
                                              kLingFields,
                                              kDecoderFields,
                                              kDeepSeekExpertFields);

constexpr auto kSarvamMlaFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("rope_interleave"),
                    harmless("q_head_dim", "the head is qk_nope_head_dim and qk_rope_head_dim"),
                    harmless("ep_size", "says how training dealt out the experts"),
                }),
                kLingFields,
                kLatentFields,
                kDecoderFields,
                kDeepSeekExpertFields);

constexpr auto kSarvamMoeAliases =
    std::to_array<FieldAlias>({kDeepSeekExpertAliases[0],
                               {"num_experts", "n_routed_experts"},
                               {"num_shared_experts", "n_shared_experts"},
                               {"num_mtp_layers", "num_nextn_predict_layers"},
                               {"use_qkv_bias", "attention_bias"}});
constexpr auto kSarvamMlaAliases =
    std::to_array<FieldAlias>({kDeepSeekExpertAliases[0],
                               {"num_experts", "n_routed_experts"},
                               {"num_shared_experts", "n_shared_experts"},
                               {"num_mtp_layers", "num_nextn_predict_layers"}});

constexpr auto kSarvamMoeNames =
    std::to_array<std::string_view>({"SarvamMoEForCausalLM", "BailingMoeV2ForCausalLM"});
constexpr auto kSarvamMoeTypes =
    std::to_array<std::string_view>({"sarvam_moe", "bailing_moe", "bailing_moe_v2"});
constexpr auto kSarvamMlaNames = std::to_array<std::string_view>({"SarvamMLAForCausalLM"});
constexpr auto kSarvamMlaTypes = std::to_array<std::string_view>({"sarvam_mla"});

constexpr auto kSarvamMoeTensors = join_tensors(
    std::to_array<TensorSpec>({
        {Role::kTokenEmbedding, "model.word_embeddings.weight", Dim::kVocab, Dim::kHidden},
        {Role::kFinalNorm, "model.norm.weight", Dim::kOne, Dim::kHidden},
        {Role::kLmHead, "lm_head.weight", Dim::kVocab, Dim::kHidden, Split::kNone, has_own_head},
        {Role::kQkv, "model.layers.{layer}.attention.query_key_value.weight", Dim::kQkv,
         Dim::kHidden, Split::kRows},
        {Role::kQkvBias, "model.layers.{layer}.attention.query_key_value.bias", Dim::kOne,
         Dim::kQkv, Split::kRows, has_attention_bias},
        {Role::kQNorm, "model.layers.{layer}.attention.query_layernorm.weight", Dim::kOne,
         Dim::kHeadDim, Split::kNone, has_qk_norm},
        {Role::kKNorm, "model.layers.{layer}.attention.key_layernorm.weight", Dim::kOne,
         Dim::kHeadDim, Split::kNone, has_qk_norm},
        {Role::kO, "model.layers.{layer}.attention.dense.weight", Dim::kHidden, Dim::kQ,
         Split::kColumns},
        {Role::kChoiceBias, "model.layers.{layer}.mlp.gate.expert_bias", Dim::kOne, Dim::kExperts,
         Split::kNone, has_choice_bias},
    }),
    kLlamaNormTensors,
    kLlamaMlpTensors,
    kExpertTensors,
    kSharedExpertsTensors);

constexpr auto kSarvamMlaTensors = join_tensors(kLlamaOuterTensors,
                                                kLlamaNormTensors,
                                                kLatentAttentionTensors,
                                                kLlamaMlpTensors,
                                                kExpertTensors,
                                                kDeepSeekExpertTensors);

// As `transformers` calls them within.
constexpr auto kSarvamMoeRenames = std::to_array<TensorRename>({
    {"embed_tokens.", "word_embeddings."},
    {".self_attn.o_proj.", ".attention.dense."},
});

}  // namespace

extern const Architecture kSarvamMoe;
constexpr Architecture kSarvamMoe = {
    .names = kSarvamMoeNames,
    .model_types = kSarvamMoeTypes,
    .computed_by = "Glm4MoeForCausalLM",
    .prefix = "model.",
    .read_config = read_sarvam_moe,
    .fields = kSarvamMoeFields,
    .aliases = kSarvamMoeAliases,
    .tensors = kSarvamMoeTensors,
    .renames = kSarvamMoeRenames,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
};

extern const Architecture kSarvamMla;
constexpr Architecture kSarvamMla = {
    .names = kSarvamMlaNames,
    .model_types = kSarvamMlaTypes,
    .computed_by = "DeepseekV3ForCausalLM",
    .prefix = "model.",
    .read_config = read_sarvam_mla,
    .fields = kSarvamMlaFields,
    .aliases = kSarvamMlaAliases,
    .tensors = kSarvamMlaTensors,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
};

}  // namespace tgi
