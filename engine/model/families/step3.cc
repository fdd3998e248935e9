// Step 3.5 and 3.7 Flash: Laguna's attention with a gate of each head and heads counted by the type
// of the layer, norms that keep their weights less one, and experts chosen by sigmoids with a bias
// beside one that all tokens go to. Some layers hold what a gate gives within a limit. 3.7 sees,
// with the same text model.
// Source: models/step3p7 in `transformers`.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"
#include "engine/model/rope.h"
#include "engine/model/step_layers.h"

namespace tgi {
namespace {

constexpr DecoderFields kStepDecoder = {
    .default_vocab_size = 128815,
    .default_num_layers = 45,
    .default_num_heads = 64,
    .default_num_kv_heads = 8,
    .default_head_dim = 128,
    .default_intermediate = 11264,
    .default_max_positions = 128000,
    .default_norm_eps = 1e-5,
    .default_bos = -1,
    .default_eos = -1,
};

constexpr std::string_view kFurtherLayers = "num_nextn_predict_layers";

ModelConfig read_step(const JsonReader& given) {
  const int32_t num_layers =
      read_size(given, kStepDecoder.num_layers, kStepDecoder.default_num_layers, kMaxLayers);
  const int64_t further = given.optional_integer(kFurtherLayers).value_or(0);
  if (further < 0 || further > kMaxLayers) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected 0 to {}, got {}", given.path_of(kFurtherLayers),
                            kMaxLayers, further));
  }
  Json json = given.json();
  json.erase("hidden_act");  // see kStepFields
  cut_step_lists(json, num_layers, further);
  std::vector<std::string> types(static_cast<size_t>(num_layers), std::string(kStepFull));
  if (given.has("layer_types")) {
    ModelConfig sized;
    sized.num_layers = num_layers;
    sized.layers.resize(types.size());
    types = read_layer_names(given.in_place(json), "layer_types", sized);
  }
  spell_step_ropes(given, types, json);
  const JsonReader config = given.in_place(json);

  ModelConfig model = read_decoder_config(config, kStepDecoder);
  model.layers_after_last = static_cast<int32_t>(further);
  model.norm_weight_offset = 1.0F;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.has_output_gate = true;
  model.output_gate = GateKind::kSigmoid;
  model.gates_heads = true;
  if (config.has("layer_types")) read_windows(config, {.default_window = 0}, model);
  read_rope_by_window(config, model,
                      {.takes_partial = true, .layer_type = kStepWindowed, .widens_context = false},
                      {.takes_partial = true, .layer_type = kStepFull, .widens_context = false});
  if (const auto scalar = read_optional_positive(config, "query_pre_attn_scalar", std::nullopt)) {
    model.attention_scale = 1.0F / std::sqrt(*scalar);
  }
  read_step_heads(config, model);
  read_experts(config,
               {.num_experts = "n_routed_experts",
                .intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "share_expert_dim",
                .default_num_experts = 288,
                .default_top_k = 8,
                .default_intermediate = 1280,
                .default_shared_intermediate = 1280,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  model.experts.has_choice_bias = true;
  model.experts.route.scale = read_positive(config, "moe_router_scaling_factor", 1.0);
  read_step_expert_layers(config, further, model);
  read_step_limits(config, "swiglu_limits", &LayerPlan::expert_limits, model);
  read_step_limits(config, "swiglu_limits_shared", &LayerPlan::gate_limits, model);
  return model;
}

constexpr auto kStepFields = join_fields(
    std::to_array<KnownField>({
        harmless("hidden_act", "gates are silu, whatever it says"),
        read_or_null("attention_bias"),
        read_or_null("layer_types"),
        read_or_null("mlp_layer_types"),
        read_or_null("moe_layers_enum"),
        read_or_null("sliding_window"),
        read_or_null("num_sliding_attention_heads"),
        read_or_null("attention_other_setting"),
        read_or_null("per_layer_config"),
        read_or_null("query_pre_attn_scalar"),
        read_or_null("rope_theta"),
        read_or_null("partial_rotary_factors"),
        read_or_null("swiglu_limits"),
        read_or_null("swiglu_limits_shared"),
        read_or_null("num_nextn_predict_layers"),
        read("n_routed_experts"),
        read("num_experts_per_tok"),
        read("moe_intermediate_size"),
        read("share_expert_dim"),
        read("moe_router_scaling_factor"),
        harmless("mtp_layer_types", kOnlyDrafts),
        harmless("mtp_mlp_layer_types", kOnlyDrafts),
        harmless_if("gating", R"([true, "per-head"])", "each head has a gate"),
        harmless_if("use_head_wise_attn_gate", "[true]", "each head has a gate"),
        harmless_if("use_qk_norm", "[true]", "heads of q and k are normed"),
        harmless_if("zero_centered", "[true]", "norms keep their weights less one"),
        harmless_if("sink", "[false]", "attention has no sinks"),
        harmless_if("use_rope_layers", "[[]]", "all layers are rotated"),
        harmless_if("yarn_only_types", R"([["full_attention"]])", "others have no scaling"),
        harmless_if("att_impl_type", R"(["GQA"])", "heads of q share those of k and v"),
        harmless_if("use_bidirectional_attention", "[false]", "no token sees one behind it"),
        harmless_if("mlp_bias", "[false]", "there are no biases of the MLP"),
        harmless_if("use_moe", "[true]", "mlp_layer_types or moe_layers_enum says it"),
        harmless("moe_layer_offset", "moe_layers_enum says which layers have experts"),
        harmless("moe_every_n_layer", "moe_layers_enum says which layers have experts"),
        harmless("moe_layer_freq", "moe_layers_enum says which layers have experts"),
        harmless_if("sparse_attention_config", "[{}]", "attention is not sparse"),
        harmless_if("use_moe_router_bias", "[true]", "experts are chosen with a bias"),
        harmless_if("moe_router_activation", R"(["sigmoid"])", "scores are sigmoids"),
        harmless_if("norm_expert_weight", "[true]", "weights of experts are normalised"),
        harmless("need_fp32_gate", kSameSums),
        harmless("max_seq_len", "max_position_embeddings is what counts"),
        harmless("output_router_logits", kTrainsRouter),
    }),
    kDecoderFields);
constexpr auto kStepSeeingFields = join_fields(kMultimodalFields,
                                               std::to_array<KnownField>({
                                                   harmless("projector_bias", kImages),
                                                   harmless("understand_projector_stride", kImages),
                                                   harmless("image_token_len", kImages),
                                                   harmless("patch_token_len", kImages),
                                                   harmless("im_start_token", kImages),
                                                   harmless("im_start_token_id", kImages),
                                                   harmless("im_end_token", kImages),
                                                   harmless("im_end_token_id", kImages),
                                                   harmless("im_patch_token", kImages),
                                                   harmless("use_im_start_end", kImages),
                                                   harmless("vision_select_layer", kImages),
                                               }));

constexpr auto kStepAliases = std::to_array<FieldAlias>({
    {"num_local_experts", "n_routed_experts"},
    {"moe_num_experts", "n_routed_experts"},
    {"moe_top_k", "num_experts_per_tok"},
    {"num_attention_groups", "num_key_value_heads"},
    {"share_expert_dims", "share_expert_dim"},
    {"num_mtp_layers", "num_nextn_predict_layers"},
});

constexpr auto kStepNames = std::to_array<std::string_view>({"Step3p5ForCausalLM"});
constexpr auto kStepTypes = std::to_array<std::string_view>({"step3p5"});
constexpr auto kStepSeeingNames =
    std::to_array<std::string_view>({"Step3p7ForConditionalGeneration"});
constexpr auto kStepSeeingTypes = std::to_array<std::string_view>({"step3p7"});
constexpr auto kStepSeeingIgnored = std::to_array<std::string_view>(
    {"vision_model.*", "vit_large_projector.*", "multi_modal_projector.*"});

constexpr TensorSpec step_experts(Role role, std::string_view name, Dim rows, Dim cols) {
  return {.role = role,
          .name = name,
          .rows = rows,
          .cols = cols,
          .split = role == Role::kExpertDown ? Split::kColumns : Split::kRows,
          .only_if = has_experts,
          .stacked = true};
}

constexpr auto kStepTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 kQkNormTensors,
                 kLlamaMlpTensors,
                 std::to_array<TensorSpec>({
                     {Role::kOutputGate, "model.layers.{layer}.self_attn.g_proj.weight",
                      Dim::kHeads, Dim::kHidden, Split::kRows},
                     {Role::kRouter, "model.layers.{layer}.moe.gate.weight", Dim::kExperts,
                      Dim::kHidden, Split::kNone, has_experts},
                     {Role::kChoiceBias, "model.layers.{layer}.moe.router_bias", Dim::kOne,
                      Dim::kExperts, Split::kNone, has_experts},
                     step_experts(Role::kExpertGate,
                                  "model.layers.{layer}.moe.gate_proj.weight",
                                  Dim::kExpertIntermediate,
                                  Dim::kHidden),
                     step_experts(Role::kExpertUp,
                                  "model.layers.{layer}.moe.up_proj.weight",
                                  Dim::kExpertIntermediate,
                                  Dim::kHidden),
                     step_experts(Role::kExpertDown,
                                  "model.layers.{layer}.moe.down_proj.weight",
                                  Dim::kHidden,
                                  Dim::kExpertIntermediate),
                     {Role::kSharedGate, "model.layers.{layer}.share_expert.gate_proj.weight",
                      Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
                     {Role::kSharedUp, "model.layers.{layer}.share_expert.up_proj.weight",
                      Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
                     {Role::kSharedDown, "model.layers.{layer}.share_expert.down_proj.weight",
                      Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
                 }));

// As `transformers` calls them within.
constexpr auto kStepRenames = std::to_array<TensorRename>({
    {".mlp.shared_experts.", ".share_expert."},
});

}  // namespace

extern const Architecture kStep35, kStep37;
constexpr Architecture kStep35 = {
    .names = kStepNames,
    .model_types = kStepTypes,
    .prefix = "model.",
    .read_config = read_step,
    .fields = kStepFields,
    .aliases = kStepAliases,
    .tensors = kStepTensors,
    .renames = kStepRenames,
    .ignored = kRotaryTables,
};
constexpr Architecture kStep37 = multimodal_of(kStepSeeingNames,
                                               kStepSeeingTypes,
                                               R"({"model_type": "step3p5"})",
                                               kStepSeeingFields,
                                               kStepSeeingIgnored);

}  // namespace tgi
