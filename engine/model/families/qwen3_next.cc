// Qwen3-Next: gated delta rule in most layers, attention with a gate of its output in the others,
// Qwen 2's experts. Source: models/qwen3_next in `transformers`.
#include <array>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/delta_rule_fields.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"

namespace tgi {
namespace {

ModelConfig read_config(const JsonReader& config) {
  ModelConfig model = read_gated_delta_decoder(config, {.default_vocab_size = 151936,
                                                        .default_hidden_size = 2048,
                                                        .default_num_layers = 48,
                                                        .default_num_heads = 16,
                                                        .default_num_kv_heads = 2,
                                                        .default_head_dim = 256,
                                                        .default_intermediate = 5632,
                                                        .default_max_positions = 32768,
                                                        .default_bos = -1,
                                                        .default_eos = -1});
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .normalises_name = "norm_topk_prob",
                .default_num_experts = 512,
                .default_top_k = 10,
                .default_intermediate = 512,
                .default_shared_intermediate = 512,
                .normalises = true},
               model);
  model.experts.has_shared_gate = true;
  read_sparse_steps(config, model);
  return model;
}

constexpr auto kFields =
    join_fields(std::to_array<KnownField>({
                    read("moe_intermediate_size"),
                    read("shared_expert_intermediate_size"),
                    read("decoder_sparse_step"),
                    read_or_null("mlp_only_layers"),
                    harmless_if("attention_bias", "[false]", "there are no biases of attention"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }),
                kDeltaRuleFields,
                kDecoderFields,
                kExpertFields);

constexpr auto kNames = std::to_array<std::string_view>({"Qwen3NextForCausalLM"});
constexpr auto kModelTypes = std::to_array<std::string_view>({"qwen3_next"});

constexpr auto kTensors =
    join_tensors(kGatedDeltaTensors,
                 std::to_array<TensorSpec>({
                     {Role::kStateIn, "model.layers.{layer}.linear_attn.in_proj_qkvz.weight",
                      Dim::kDeltaIn, Dim::kHidden, Split::kRows},
                     {Role::kStateSecondIn, "model.layers.{layer}.linear_attn.in_proj_ba.weight",
                      Dim::kDeltaSecondIn, Dim::kHidden, Split::kRows},
                 }),
                 kLlamaMlpTensors,
                 kExpertTensors,
                 kQwenSharedExpertTensors);

// The layers that predict more tokens at once.
constexpr auto kIgnored = std::to_array<std::string_view>({".rotary_emb.inv_freq", "mtp.*"});

}  // namespace

extern const Architecture kQwen3Next;
constexpr Architecture kQwen3Next = {
    .names = kNames,
    .model_types = kModelTypes,
    .prefix = "model.",
    .read_config = read_config,
    .fields = kFields,
    .tensors = kTensors,
    .ignored = kIgnored,
};

}  // namespace tgi
