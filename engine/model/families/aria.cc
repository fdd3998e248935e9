// Aria, a checkpoint that sees: its text model has Llama's attention, and in every layer experts,
// whose matrices are one tensor with inputs as rows, beside shared ones that all tokens go to.
// Source: models/aria in `transformers`, and what published files call their tensors.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

ModelConfig read_aria(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_intermediate = 4096});
  model.attention_bias = config.boolean_or("attention_bias", false);
  if (model.activation != Activation::kSilu) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: the gates of this family's experts are silu, got {}",
                            config.path_of("hidden_act"), config.json().at("hidden_act").dump()));
  }
  read_rope(config, model);
  // The softmax over the chosen is that over all, divided by their sum.
  read_experts(config, {.num_experts = "moe_num_experts", .top_k = "moe_topk", .normalises = true},
               model);
  const int64_t num_shared = read_size(config, "moe_num_shared_experts", 2, kMaxExperts);
  model.experts.shared_intermediate_size =
      check_size(config, "moe_num_shared_experts", num_shared * model.experts.intermediate_size,
                 kMaxIntermediateSize);
  use_experts_in_all_layers(model);
  return model;
}

constexpr auto kAriaFields =
    join_fields(std::to_array<KnownField>({
                    read_or_null("attention_bias"),
                    read("moe_num_experts"),
                    read("moe_topk"),
                    read("moe_num_shared_experts"),
                    harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
                    harmless("moe_z_loss_coeff", kTrainsRouter),
                    harmless("moe_aux_loss_coeff", kTrainsRouter),
                    harmless("output_router_logits", kTrainsRouter),
                }),
                kDecoderFields);

constexpr auto kAriaSeeingFields =
    join_fields(kMultimodalFields,
                std::to_array<KnownField>({
                    harmless("projector_patch_to_query_dict", kImages),
                    harmless("max_value_projector_patch_to_query_dict", kImages),
                    harmless("ignore_index", kOnlyTraining),
                }));

constexpr auto kAriaTextNames = std::to_array<std::string_view>({"AriaTextForCausalLM"});
constexpr auto kAriaTextTypes = std::to_array<std::string_view>({"aria_text", "aria_moe_lm"});
constexpr auto kAriaNames = std::to_array<std::string_view>({"AriaForConditionalGeneration"});
constexpr auto kAriaTypes = std::to_array<std::string_view>({"aria"});

constexpr auto kAriaTensors = join_tensors(
    kLlamaOuterTensors,
    kLlamaNormTensors,
    kLlamaAttentionTensors,
    kLlamaQkvBiasTensors,
    kLlamaOBiasTensors,
    kSharedExpertsTensors,
    std::to_array<TensorSpec>({
        {Role::kRouter, "model.layers.{layer}.mlp.router.weight", Dim::kExperts, Dim::kHidden},
        {.role = Role::kExpertGateUp,
         .name = "model.layers.{layer}.mlp.experts.fc1.weight",
         .rows = Dim::kExpertGateUp,
         .cols = Dim::kHidden,
         .split = Split::kRows,
         .transposed = true,
         .stacked = true},
        {.role = Role::kExpertDown,
         .name = "model.layers.{layer}.mlp.experts.fc2.weight",
         .rows = Dim::kHidden,
         .cols = Dim::kExpertIntermediate,
         .split = Split::kColumns,
         .transposed = true,
         .stacked = true},
    }));

}  // namespace

extern const Architecture kAriaText;
constexpr Architecture kAriaText = {
    .names = kAriaTextNames,
    .model_types = kAriaTextTypes,
    .prefix = "model.",
    .read_config = read_aria,
    .fields = kAriaFields,
    .tensors = kAriaTensors,
    .ignored = kRotaryTables,
};

extern const Architecture kAria;
constexpr Architecture kAria =
    multimodal_of(kAriaNames, kAriaTypes, R"({"model_type": "aria_text"})", kAriaSeeingFields);

}  // namespace tgi
