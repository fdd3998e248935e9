// Qwen 3.5, dense and with experts: Qwen3-Next's layers, the inputs of the gated delta rule in
// matrices of their own. Published ones are multimodal. Source: models/qwen3_5 and
// models/qwen3_5_moe in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/delta_rule_fields.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {
namespace {

ModelConfig read_qwen3_5(const JsonReader& config) {
  return read_gated_delta_decoder(config, {.default_vocab_size = 248320,
                                           .default_num_heads = 16,
                                           .default_num_kv_heads = 4,
                                           .default_head_dim = 256,
                                           .default_intermediate = 12288,
                                           .default_max_positions = 32768,
                                           .default_bos = -1,
                                           .default_eos = -1});
}

ModelConfig read_qwen3_5_moe(const JsonReader& config) {
  ModelConfig model = read_gated_delta_decoder(config, {.default_vocab_size = 248320,
                                                        .default_hidden_size = 2048,
                                                        .default_num_layers = 40,
                                                        .default_num_heads = 16,
                                                        .default_num_kv_heads = 2,
                                                        .default_head_dim = 256,
                                                        .default_intermediate = -1,
                                                        .default_max_positions = 32768,
                                                        .default_bos = -1,
                                                        .default_eos = -1});
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .default_num_experts = 256,
                .default_top_k = 8,
                .default_intermediate = 512,
                .default_shared_intermediate = 512,
                .normalises = true},
               model);
  model.experts.has_shared_gate = true;
  use_experts_in_all_layers(model);
  return model;
}

constexpr std::string_view kQwen35NextTokens = "tokens are predicted one by one";

constexpr auto kQwen35Fields =
    join_fields(std::to_array<KnownField>({
                    harmless_if("attention_bias", "[false]", "there are no biases of attention"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless_if("attn_output_gate", "[true]", "what attention gives is gated"),
                    harmless_if("output_gate_type", R"(["swish", "silu"])", "the gate is silu"),
                    harmless("mamba_ssm_dtype", "states are f32"),
                    harmless("mtp_num_hidden_layers", kQwen35NextTokens),
                    harmless("mtp_use_dedicated_embeddings", kQwen35NextTokens),
                }),
                kDeltaRuleFields,
                kDecoderFields);

constexpr auto kQwen35MoeFields =
    join_fields(std::to_array<KnownField>({
                    harmless("intermediate_size", "all layers have experts"),
                    harmless_if("norm_topk_prob", "[true]", "weights of experts are normalised"),
                    harmless_if("decoder_sparse_step", "[1]", "all layers have experts"),
                    harmless_if("mlp_only_layers", "[[]]", "all layers have experts"),
                    read("num_experts"),
                    read("num_experts_per_tok"),
                    read("moe_intermediate_size"),
                    read("shared_expert_intermediate_size"),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }),
                kQwen35Fields);

constexpr auto kQwen35Names = std::to_array<std::string_view>({"Qwen3_5ForCausalLM"});
constexpr auto kQwen35Types = std::to_array<std::string_view>({"qwen3_5_text"});
constexpr auto kQwen35MoeNames = std::to_array<std::string_view>({"Qwen3_5MoeForCausalLM"});
constexpr auto kQwen35MoeTypes = std::to_array<std::string_view>({"qwen3_5_moe_text"});
constexpr auto kQwen35MultimodalNames =
    std::to_array<std::string_view>({"Qwen3_5ForConditionalGeneration"});
constexpr auto kQwen35MultimodalTypes = std::to_array<std::string_view>({"qwen3_5"});
constexpr auto kQwen35MoeMultimodalNames =
    std::to_array<std::string_view>({"Qwen3_5MoeForConditionalGeneration"});
constexpr auto kQwen35MoeMultimodalTypes = std::to_array<std::string_view>({"qwen3_5_moe"});

constexpr auto kQwen35InputTensors = std::to_array<TensorSpec>({
    {Role::kStateIn, "model.layers.{layer}.linear_attn.in_proj_qkv.weight", Dim::kConvChannels,
     Dim::kHidden},
    {Role::kStateGateIn, "model.layers.{layer}.linear_attn.in_proj_z.weight", Dim::kStateChannels,
     Dim::kHidden},
    {Role::kStateSecondIn, "model.layers.{layer}.linear_attn.in_proj_b.weight", Dim::kStateHeads,
     Dim::kHidden},
    {Role::kStateThirdIn, "model.layers.{layer}.linear_attn.in_proj_a.weight", Dim::kStateHeads,
     Dim::kHidden},
});

constexpr auto kQwen35MixerTensors = join_tensors(kGatedDeltaTensors, kQwen35InputTensors);
constexpr auto kQwen35Tensors = join_tensors(kQwen35MixerTensors, kLlamaMlpTensors);
// Published ones store the matrices of a layer's experts one behind the other; what is quantised,
// and what `transformers` writes, has each in a tensor of its own.
constexpr auto kQwen35MoeTensors =
    join_tensors(kQwen35MixerTensors, kStackedExpertTensors, kQwenSharedExpertTensors);
constexpr auto kQwen35SeparateTensors =
    join_tensors(kQwen35MixerTensors, kExpertTensors, kQwenSharedExpertTensors);

// The layers that predict more tokens at once.
constexpr auto kQwen35Ignored = std::to_array<std::string_view>({".rotary_emb.inv_freq", "mtp.*"});

}  // namespace

extern const Architecture kQwen35;
constexpr Architecture kQwen35 = {
    .names = kQwen35Names,
    .model_types = kQwen35Types,
    .prefix = "model.",
    .read_config = read_qwen3_5,
    .fields = kQwen35Fields,
    .tensors = kQwen35Tensors,
    .ignored = kQwen35Ignored,
};

extern const Architecture kQwen35Moe;
constexpr Architecture kQwen35Moe = {
    .names = kQwen35MoeNames,
    .model_types = kQwen35MoeTypes,
    .prefix = "model.",
    .read_config = read_qwen3_5_moe,
    .fields = kQwen35MoeFields,
    .tensors = kQwen35MoeTensors,
    .tensors_of_separate_experts = kQwen35SeparateTensors,
    .ignored = kQwen35Ignored,
};

extern const Architecture kQwen35Multimodal;
constexpr Architecture kQwen35Multimodal = multimodal_of(
    kQwen35MultimodalNames, kQwen35MultimodalTypes, R"({"model_type": "qwen3_5_text"})");

extern const Architecture kQwen35MoeMultimodal;
constexpr Architecture kQwen35MoeMultimodal = multimodal_of(
    kQwen35MoeMultimodalNames, kQwen35MoeMultimodalTypes, R"({"model_type": "qwen3_5_moe_text"})");

}  // namespace tgi
