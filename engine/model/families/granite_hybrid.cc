// Granite 4: Granite's multipliers, Mamba 2 in most layers, and behind each an expert that all
// tokens go to, alone or beside others. Source: models/granitemoehybrid in `transformers`.
#include <array>
#include <string>
#include <string_view>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"
#include "engine/model/state_fields.h"
#include "engine/model/state_tensors.h"

namespace tgi {
namespace {

// Its router takes the softmax over the chosen: the same as all of it, divided by their sum.
void read_mlp(const JsonReader& config, ModelConfig& model) {
  const int32_t shared = read_size(config, "shared_intermediate_size", 1024, kMaxIntermediateSize);
  if (config.integer_or("num_local_experts", 8) == 0) {
    model.intermediate_size = shared;
    return;
  }
  read_experts(config,
               {.num_experts = "num_local_experts",
                .default_num_experts = 8,
                .default_top_k = 2,
                .normalises = true},
               model);
  model.experts.shared_intermediate_size = shared;
  use_experts_in_all_layers(model);
}

ModelConfig read_granite_hybrid(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.embedding_multiplier = read_positive(config, "embedding_multiplier", 1.0);
  model.residual_multiplier = read_positive(config, "residual_multiplier", 1.0);
  model.attention_scale = read_positive(config, "attention_multiplier", 1.0);
  model.logit_scale = 1.0F / read_positive(config, "logits_scaling", 1.0);
  read_mamba2(config, kHybridMamba2Names, model);
  const std::string positions = config.optional_string("position_embedding_type").value_or("nope");
  if (positions == "rope") read_rope(config, model);
  read_mlp(config, model);
  if (config.has("layer_types")) {
    read_mixer_types(config, "layer_types",
                     {.attention = "full_attention",
                      .state = "linear_attention",
                      .old_attention = "attention",
                      .old_state = "mamba"},
                     model);
  } else {
    use_state_in_all_layers(model);
  }
  return model;
}

constexpr auto kGraniteHybridFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read("embedding_multiplier"),
                    read("residual_multiplier"),
                    read("attention_multiplier"),
                    read("logits_scaling"),
                    read_or_null("layer_types"),
                    read("num_local_experts"),
                    read("num_experts_per_tok"),
                    read("shared_intermediate_size"),
                    read_or_null("position_embedding_type"),
                    harmless("init_method", kStartsTraining),
                    harmless("router_aux_loss_coef", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                    harmless_if("normalization_function", R"(["rmsnorm"])", "norms have no mean"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                }),
                kHybridMamba2Fields,
                kMambaFields,
                kDecoderFields);

constexpr auto kGraniteHybridNames =
    std::to_array<std::string_view>({"GraniteMoeHybridForCausalLM"});
constexpr auto kGraniteHybridTypes = std::to_array<std::string_view>({"granitemoehybrid"});

constexpr auto kGraniteHybridTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 kHybridMamba2Tensors,
                 std::to_array<TensorSpec>({
                     {Role::kRouter, "model.layers.{layer}.block_sparse_moe.router.layer.weight",
                      Dim::kExperts, Dim::kHidden, Split::kNone, has_experts},
                     {.role = Role::kExpertGateUp,
                      .name = "model.layers.{layer}.block_sparse_moe.input_linear.weight",
                      .rows = Dim::kExpertGateUp,
                      .cols = Dim::kHidden,
                      .split = Split::kRows,
                      .only_if = has_experts,
                      .stacked = true},
                     {.role = Role::kExpertDown,
                      .name = "model.layers.{layer}.block_sparse_moe.output_linear.weight",
                      .rows = Dim::kHidden,
                      .cols = Dim::kExpertIntermediate,
                      .split = Split::kColumns,
                      .only_if = has_experts,
                      .stacked = true},
                     {Role::kSharedGateUp, "model.layers.{layer}.shared_mlp.input_linear.weight",
                      Dim::kSharedGateUp, Dim::kHidden, Split::kRows, has_experts},
                     {Role::kSharedDown, "model.layers.{layer}.shared_mlp.output_linear.weight",
                      Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_experts},
                     {Role::kGateUp, "model.layers.{layer}.shared_mlp.input_linear.weight",
                      Dim::kGateUp, Dim::kHidden, Split::kRows, has_dense_mlp},
                     {Role::kDown, "model.layers.{layer}.shared_mlp.output_linear.weight",
                      Dim::kHidden, Dim::kIntermediate, Split::kColumns, has_dense_mlp},
                 }));

}  // namespace

extern const Architecture kGraniteHybrid;
constexpr Architecture kGraniteHybrid = {
    .names = kGraniteHybridNames,
    .model_types = kGraniteHybridTypes,
    .prefix = "model.",
    .read_config = read_granite_hybrid,
    .fields = kGraniteHybridFields,
    .tensors = kGraniteHybridTensors,
    .ignored = kRotaryTables,
};

}  // namespace tgi
