// Hunyuan 3: Llama's block with norms of the heads of q and k and, behind the first layer, experts
// chosen by sigmoids with a bias beside one that all tokens go to. The layer that predicts a second
// token may draft. Source: models/hy_v3 in `transformers`; of that layer, hy_v3_mtp in vLLM.
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

ModelConfig read_hy_v3(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 120832,
                                                   .default_num_layers = 80,
                                                   .default_num_heads = 64,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 13312,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);  // of all but the experts that are chosen
  read_rope(config, model, {.default_theta = 11158840.0});
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .default_num_experts = 192,
                .default_top_k = 8,
                .default_intermediate = 1536,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  model.experts.has_choice_bias = true;
  model.experts.route.scale = read_positive(config, "router_scaling_factor", 2.826);
  const int64_t num_shared = config.integer_or("num_shared_experts", 1);
  if (num_shared != 0) {
    const int32_t count = check_size(config, "num_shared_experts", num_shared, kMaxExperts);
    model.experts.shared_intermediate_size =
        check_size(config, "num_shared_experts * moe_intermediate_size",
                   int64_t{count} * model.experts.intermediate_size, kMaxIntermediateSize);
  }
  if (!read_mlp_layer_types(config, model)) {
    use_experts_in_all_layers(model);
    model.layers.front().mlp = MlpKind::kDense;
  }
  return model;
}

constexpr auto kHy3Fields =
    join_fields(kDecoderFields,
                std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read("num_experts"),
                    read("num_experts_per_tok"),
                    read_or_null("num_shared_experts"),
                    read("moe_intermediate_size"),
                    read("router_scaling_factor"),
                    read_or_null("mlp_layer_types"),
                    read_or_null("mlp_bias"),
                    harmless("enable_moe_fp32_combine", "experts are always added up in f32"),
                    harmless("num_nextn_predict_layers", kOnlyDrafts),
                    harmless("output_router_logits", kTrainsRouter),
                }));

constexpr auto kHy3Aliases = std::to_array<FieldAlias>({{"num_local_experts", "num_experts"}});

constexpr auto kHy3Names = std::to_array<std::string_view>({"HYV3ForCausalLM"});
constexpr auto kHy3Types = std::to_array<std::string_view>({"hy_v3"});

constexpr bool has_hy3_dense_bias(const ModelConfig& config, int32_t layer) {
  return config.mlp_bias && has_dense_mlp(config, layer);
}
constexpr bool has_hy3_shared_bias(const ModelConfig& config, int32_t layer) {
  return config.mlp_bias && has_shared_expert(config, layer);
}

constexpr auto kHy3BiasTensors = std::to_array<TensorSpec>({
    {Role::kGateBias, "model.layers.{layer}.mlp.gate_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_hy3_dense_bias},
    {Role::kUpBias, "model.layers.{layer}.mlp.up_proj.bias", Dim::kOne, Dim::kIntermediate,
     Split::kRows, has_hy3_dense_bias},
    {Role::kDownBias, "model.layers.{layer}.mlp.down_proj.bias", Dim::kOne, Dim::kHidden,
     Split::kColumns, has_hy3_dense_bias},
    {Role::kSharedGateBias, "model.layers.{layer}.mlp.shared_mlp.gate_proj.bias", Dim::kOne,
     Dim::kSharedIntermediate, Split::kRows, has_hy3_shared_bias},
    {Role::kSharedUpBias, "model.layers.{layer}.mlp.shared_mlp.up_proj.bias", Dim::kOne,
     Dim::kSharedIntermediate, Split::kRows, has_hy3_shared_bias},
    {Role::kSharedDownBias, "model.layers.{layer}.mlp.shared_mlp.down_proj.bias", Dim::kOne,
     Dim::kHidden, Split::kColumns, has_hy3_shared_bias},
});

constexpr auto kHy3ExpertTensors = std::to_array<TensorSpec>({
    {Role::kRouter, "model.layers.{layer}.mlp.router.gate.weight", Dim::kExperts, Dim::kHidden,
     Split::kNone, has_experts},
    {Role::kChoiceBias, "model.layers.{layer}.mlp.expert_bias", Dim::kOne, Dim::kExperts,
     Split::kNone, has_choice_bias},
    {Role::kExpertGate, "model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertUp, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
     Dim::kExpertIntermediate, Dim::kHidden, Split::kRows, has_experts},
    {Role::kExpertDown, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight", Dim::kHidden,
     Dim::kExpertIntermediate, Split::kColumns, has_experts},
    {Role::kSharedGate, "model.layers.{layer}.mlp.shared_mlp.gate_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedUp, "model.layers.{layer}.mlp.shared_mlp.up_proj.weight",
     Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
    {Role::kSharedDown, "model.layers.{layer}.mlp.shared_mlp.down_proj.weight", Dim::kHidden,
     Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
});

constexpr auto kHy3Tensors = join_tensors(kLlamaOuterTensors,
                                          kLlamaNormTensors,
                                          kLlamaAttentionTensors,
                                          kLlamaQkvBiasTensors,
                                          kLlamaOBiasTensors,
                                          kQkNormTensors,
                                          kLlamaMlpTensors,
                                          kHy3BiasTensors,
                                          kHy3ExpertTensors);

constexpr auto kHy3Copies = std::to_array<std::string_view>(
    {"embed_tokens.weight", "shared_head.weight", "shared_head.head.weight"});
constexpr NextTokenNames kHy3NextTokens = {
    .count_field = "num_nextn_predict_layers",
    .embedding_norm = "enorm.weight",
    .hidden_norm = "hnorm.weight",
    .projection = "eh_proj.weight",
    .final_norm = "final_layernorm.weight",
    .copies = kHy3Copies,
    .hands_on_normed = true,
};

// As `transformers` calls them within.
constexpr auto kHy3Renames = std::to_array<TensorRename>({
    {".mlp.shared_experts.", ".mlp.shared_mlp."},
});

}  // namespace

extern const Architecture kHyV3;
constexpr Architecture kHyV3 = {
    .names = kHy3Names,
    .model_types = kHy3Types,
    .prefix = "model.",
    .read_config = read_hy_v3,
    .fields = kHy3Fields,
    .aliases = kHy3Aliases,
    .tensors = kHy3Tensors,
    .renames = kHy3Renames,
    .ignored = kRotaryTables,
    .ignores_layer_after_last = true,
    .next_tokens = &kHy3NextTokens,
};

}  // namespace tgi
