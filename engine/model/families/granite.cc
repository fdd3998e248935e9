// Granite 3: Llama's block with multipliers of embedding, branches, scores and logits; dense, or
// with experts in place of the MLP, the last kind beside one that all tokens go to. Source:
// models/granite, models/granitemoe and models/granitemoeshared in `transformers`.
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

ModelConfig read_granite(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  model.embedding_multiplier = read_positive(config, "embedding_multiplier", 1.0);
  model.residual_multiplier = read_positive(config, "residual_multiplier", 1.0);
  model.attention_scale = read_positive(config, "attention_multiplier", 1.0);
  model.logit_scale = 1.0F / read_positive(config, "logits_scaling", 1.0);
  read_rope(config, model);
  refuse_windows(config, model);
  return model;
}

// Its router takes the softmax over the chosen: the same as all of it, divided by their sum.
ModelConfig read_granite_moe(const JsonReader& config) {
  ModelConfig model = read_granite(config);
  read_experts(config,
               {.num_experts = "num_local_experts",
                .default_num_experts = 8,
                .default_top_k = 2,
                .normalises = true},
               model);
  use_experts_in_all_layers(model);
  return model;
}

ModelConfig read_config_shared(const JsonReader& config) {
  ModelConfig model = read_granite_moe(config);
  const int64_t shared = config.integer_or("shared_intermediate_size", 0);
  if (shared == 0) return model;
  model.experts.shared_intermediate_size =
      check_size(config, "shared_intermediate_size", shared, kMaxIntermediateSize);
  return model;
}

constexpr auto kGraniteFields = join_fields(kDecoderFields,
                                            std::to_array<KnownField>({
                                                read_or_null("attention_bias"),
                                                read_or_null("mlp_bias"),
                                                read("embedding_multiplier"),
                                                read("residual_multiplier"),
                                                read("attention_multiplier"),
                                                read("logits_scaling"),
                                                read_or_null("layer_types"),
                                                read_or_null("sliding_window"),
                                                read_or_null("use_sliding_window"),
                                            }));

constexpr auto kGraniteFieldsMoe =
    join_fields(std::to_array<KnownField>({
                    read("num_local_experts"),
                    read("num_experts_per_tok"),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                    harmless_if("mlp_bias", "[false]", "experts have none"),
                }),
                kGraniteFields);

constexpr auto kFieldsShared = join_fields(std::to_array<KnownField>({
                                               read("shared_intermediate_size"),
                                           }),
                                           kGraniteFieldsMoe);

constexpr auto kGraniteNamesMoe = std::to_array<std::string_view>({"GraniteMoeForCausalLM"});
constexpr auto kGraniteTypesMoe = std::to_array<std::string_view>({"granitemoe"});
constexpr auto kNamesShared = std::to_array<std::string_view>({"GraniteMoeSharedForCausalLM"});
constexpr auto kModelTypesShared = std::to_array<std::string_view>({"granitemoeshared"});

constexpr auto kGraniteNames = std::to_array<std::string_view>({"GraniteForCausalLM"});
constexpr auto kGraniteTypes = std::to_array<std::string_view>({"granite"});

constexpr auto kGraniteTensors = join_tensors(kLlamaOuterTensors,
                                              kLlamaNormTensors,
                                              kLlamaAttentionTensors,
                                              kLlamaQkvBiasTensors,
                                              kLlamaOBiasTensors,
                                              kLlamaMlpTensors,
                                              kLlamaMlpBiasTensors);

constexpr auto kGraniteTensorsMoe =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 std::to_array<TensorSpec>({
                     {Role::kRouter, "model.layers.{layer}.block_sparse_moe.router.layer.weight",
                      Dim::kExperts, Dim::kHidden},
                     {.role = Role::kExpertGateUp,
                      .name = "model.layers.{layer}.block_sparse_moe.input_linear.weight",
                      .rows = Dim::kExpertGateUp,
                      .cols = Dim::kHidden,
                      .split = Split::kRows,
                      .stacked = true},
                     {.role = Role::kExpertDown,
                      .name = "model.layers.{layer}.block_sparse_moe.output_linear.weight",
                      .rows = Dim::kHidden,
                      .cols = Dim::kExpertIntermediate,
                      .split = Split::kColumns,
                      .stacked = true},
                 }));
constexpr auto kTensorsShared =
    join_tensors(kGraniteTensorsMoe,
                 std::to_array<TensorSpec>({
                     {Role::kSharedGateUp, "model.layers.{layer}.shared_mlp.input_linear.weight",
                      Dim::kSharedGateUp, Dim::kHidden, Split::kRows, has_shared_expert},
                     {Role::kSharedDown, "model.layers.{layer}.shared_mlp.output_linear.weight",
                      Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
                 }));

}  // namespace

extern const Architecture kGranite;
constexpr Architecture kGranite = {
    .names = kGraniteNames,
    .model_types = kGraniteTypes,
    .prefix = "model.",
    .read_config = read_granite,
    .fields = kGraniteFields,
    .tensors = kGraniteTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kGraniteMoe;
constexpr Architecture kGraniteMoe = {
    .names = kGraniteNamesMoe,
    .model_types = kGraniteTypesMoe,
    .prefix = "model.",
    .read_config = read_granite_moe,
    .fields = kGraniteFieldsMoe,
    .tensors = kGraniteTensorsMoe,
    .ignored = kRotaryTables,
};

extern const Architecture kGraniteMoeShared;
constexpr Architecture kGraniteMoeShared = {
    .names = kNamesShared,
    .model_types = kModelTypesShared,
    .prefix = "model.",
    .read_config = read_config_shared,
    .fields = kFieldsShared,
    .tensors = kTensorsShared,
    .ignored = kRotaryTables,
};

}  // namespace tgi
