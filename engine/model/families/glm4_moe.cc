// GLM 4.5 and 4.6: Llama's block with a partly rotated head and, behind the first layers,
// DeepSeek's experts. The layer that predicts a second token may draft. Source:
// models/glm4_moe in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/next_tokens.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_glm4_moe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151552,
                                                   .default_num_layers = 46,
                                                   .default_num_heads = 96,
                                                   .default_num_kv_heads = 8,
                                                   .default_intermediate = 10944,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.has_qk_norm = config.boolean_or("use_qk_norm", false);
  read_rope(config, model, {.takes_partial = true, .default_partial = 0.5});
  read_deepseek_experts(
      config, {.default_num_experts = 128, .default_top_k = 8, .default_intermediate = 1408},
      model);
  read_first_sparse_layer(config, 1, model);
  return model;
}

constexpr auto kGlm4MoeFields = join_fields(kDecoderFields,
                                            kDeepSeekExpertFields,
                                            std::to_array<KnownField>({
                                                read_or_null("attention_bias"),
                                                read("use_qk_norm"),
                                                harmless("num_nextn_predict_layers", kOnlyDrafts),
                                            }));

constexpr auto kGlm4MoeAliases = std::to_array<FieldAlias>(
    {kDeepSeekExpertAliases[0], {"num_mtp_layers", "num_nextn_predict_layers"}});

constexpr auto kGlm4MoeNames = std::to_array<std::string_view>({"Glm4MoeForCausalLM"});
constexpr auto kGlm4MoeTypes = std::to_array<std::string_view>({"glm4_moe"});

constexpr auto kGlm4MoeTensors = join_tensors(kLlamaOuterTensors,
                                              kLlamaNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kOptionalQkNormTensors,
                                              kLlamaMlpTensors,
                                              kExpertTensors,
                                              kDeepSeekExpertTensors);

}  // namespace

extern const Architecture kGlm4Moe;
constexpr Architecture kGlm4Moe = {
    .names = kGlm4MoeNames,
    .model_types = kGlm4MoeTypes,
    .prefix = "model.",
    .read_config = read_glm4_moe,
    .fields = kGlm4MoeFields,
    .aliases = kGlm4MoeAliases,
    .tensors = kGlm4MoeTensors,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
    .next_tokens = &kDeepSeekNextTokens,
};

}  // namespace tgi
