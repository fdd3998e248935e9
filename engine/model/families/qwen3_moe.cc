// Qwen 3 with experts: Qwen 3's attention, experts in place of the MLP of all or some layers.
// Source: models/qwen3_moe in `transformers`.
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

ModelConfig read_qwen3_moe(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 151936,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 24,
                                                   .default_num_kv_heads = 4,
                                                   .default_intermediate = 6144,
                                                   .default_max_positions = 32768,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  // Unlike in Qwen 3, all layers have the window if any has.
  if (config.boolean_or("use_sliding_window", false)) {
    read_windows(config, {.default_window = 4096, .in_all_layers = true}, model);
  }
  read_rope(config, model);
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 128,
                .default_top_k = 8,
                .default_intermediate = 768},
               model);
  read_sparse_steps(config, model);
  return model;
}

constexpr auto kQwen3MoeFields =
    join_fields(kDecoderFields,
                kExpertFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read_or_null("use_sliding_window"),
                    read_or_null("sliding_window"),
                    read_or_null("layer_types"),
                    read("moe_intermediate_size"),
                    read("decoder_sparse_step"),
                    read_or_null("mlp_only_layers"),
                    harmless("max_window_layers", "all layers have the window, or none"),
                    harmless_if("qkv_bias", "[false]", "attention_bias says which there are"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }));

constexpr auto kQwen3MoeNames = std::to_array<std::string_view>({"Qwen3MoeForCausalLM"});
constexpr auto kQwen3MoeTypes = std::to_array<std::string_view>({"qwen3_moe"});

constexpr auto kQwen3MoeTensors = join_tensors(kLlamaOuterTensors,
                                               kLlamaNormTensors,
                                               kLlamaAttentionTensors,
                                               kLlamaQkvBiasTensors,
                                               kLlamaOBiasTensors,
                                               kQkNormTensors,
                                               kLlamaMlpTensors,
                                               kExpertTensors);

}  // namespace

extern const Architecture kQwen3Moe;
constexpr Architecture kQwen3Moe = {
    .names = kQwen3MoeNames,
    .model_types = kQwen3MoeTypes,
    .prefix = "model.",
    .read_config = read_qwen3_moe,
    .fields = kQwen3MoeFields,
    .aliases = kExpertAliases,
    .tensors = kQwen3MoeTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
