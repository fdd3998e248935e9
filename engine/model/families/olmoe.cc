// OLMoE: experts in place of Llama's MLP, and a norm over all heads of q and of k.
// Source: models/olmoe in `transformers`; https://arxiv.org/abs/2409.02060.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_olmoe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 50304,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 16,
                                                   .default_num_heads = 16,
                                                   .default_intermediate = 2048,
                                                   .default_max_positions = 4096,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = 50279});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.qk_norm = QkNorm::kRow;
  model.qkv_clip = read_optional_positive(config, "clip_qkv", {}).value_or(0.0F);
  read_rope(config, model);
  read_experts(config,
               {.normalises_name = "norm_topk_prob", .default_num_experts = 64, .default_top_k = 8},
               model);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kOlmoeFields =
    join_fields(kDecoderFields,
                kExpertFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("clip_qkv"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }));

constexpr auto kOlmoeNames = std::to_array<std::string_view>({"OlmoeForCausalLM"});
constexpr auto kOlmoeTypes = std::to_array<std::string_view>({"olmoe"});

constexpr auto kOlmoeTensors = join_tensors(kLlamaOuterTensors,
                                            kLlamaNormTensors,
                                            kLlamaAttentionTensors,
                                            kLlamaQkvBiasTensors,
                                            kLlamaOBiasTensors,
                                            kQkRowNormTensors,
                                            kExpertTensors);

}  // namespace

extern const Architecture kOlmoe;
constexpr Architecture kOlmoe = {
    .names = kOlmoeNames,
    .model_types = kOlmoeTypes,
    .prefix = "model.",
    .read_config = read_olmoe,
    .fields = kOlmoeFields,
    .tensors = kOlmoeTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
