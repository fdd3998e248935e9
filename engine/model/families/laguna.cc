// Laguna: Qwen 3's attention with a window in the layers that the config names, another rotation
// where there is one, heads counted layer by layer and what they give gated, by a number for each
// head or for each of its columns; experts chosen by sigmoids with a bias beside one that all
// tokens go to. Source: models/laguna in `transformers`.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/expert_fields.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {
namespace {

constexpr std::string_view kHeadsOfLayers = "num_attention_heads_per_layer";

void read_heads_of_layers(const JsonReader& config, ModelConfig& model) {
  if (!config.has(kHeadsOfLayers)) return;
  const Json& heads = read_layer_numbers(config, kHeadsOfLayers, model);
  const auto refuse = [&](const std::string& what) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {}", config.path_of(kHeadsOfLayers), what));
  };
  for (size_t i = 0; i < heads.size(); ++i) {
    const bool fits = heads[i].is_number_integer() && heads[i].get<int64_t>() > 0 &&
                      heads[i].get<int64_t>() <= kMaxHeads &&
                      heads[i].get<int64_t>() * model.head_dim <= kMaxQuerySize &&
                      heads[i].get<int64_t>() % model.num_kv_heads == 0;
    if (!fits) {
      refuse(fmt::format("entry {} is {}, expected a multiple of {} KV heads, at most {}", i,
                         heads[i].dump(), model.num_kv_heads,
                         std::min<int64_t>(kMaxHeads, kMaxQuerySize / model.head_dim)));
    }
    const auto count = heads[i].get<int32_t>();
    if (count != model.num_heads) model.layers[i].num_heads = count;
  }
}

// true and "per-head", false and other words: a gate of each head, or of all its columns.
bool is_gate_of_heads(const JsonReader& config) {
  if (!config.has("gating")) return true;
  const Json& gating = config.json().at("gating");
  if (gating.is_boolean()) return gating.get<bool>();
  return config.string_or("gating", "") == "per-head";
}

void read_laguna_ropes(const JsonReader& config, ModelConfig& model) {
  Json json = config.json();
  json.erase("partial_rotary_factor");  // see kLagunaFields
  if (!config.has("rope_parameters") && !config.has("rope_scaling")) {
    json["rope_parameters"] = Json::parse(
        R"({"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "default", "rope_theta": 500000.0,
                               "partial_rotary_factor": 0.5}})");
  }
  read_rope_by_window(
      config.in_place(json), model,
      {.takes_partial = true, .layer_type = "sliding_attention", .widens_context = false},
      {.takes_partial = true, .layer_type = "full_attention", .widens_context = false});
}

ModelConfig read_laguna(const JsonReader& config) {
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 100352,
                                                   .default_hidden_size = 2048,
                                                   .default_num_layers = 40,
                                                   .default_num_heads = 48,
                                                   .default_num_kv_heads = 8,
                                                   .default_head_dim = 128,
                                                   .default_intermediate = 8192,
                                                   .default_max_positions = 131072,
                                                   .default_bos = -1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.has_output_gate = true;
  model.output_gate = GateKind::kSoftplus;
  model.gates_heads = is_gate_of_heads(config);
  // Without the list no layer has a window.
  if (config.has("layer_types")) read_windows(config, {.default_window = 512}, model);
  read_heads_of_layers(config, model);
  read_laguna_ropes(config, model);
  read_experts(config,
               {.intermediate_size = "moe_intermediate_size",
                .shared_intermediate_size = "shared_expert_intermediate_size",
                .default_num_experts = 256,
                .default_top_k = 8,
                .default_intermediate = 512,
                .default_shared_intermediate = 512,
                .score = RouterScore::kSigmoid,
                .normalises = true},
               model);
  model.experts.has_choice_bias = true;
  model.experts.route.scale = read_positive(config, "moe_routed_scaling_factor", 1.0);
  if (!read_mlp_layer_types(config, model)) {
    use_experts_in_all_layers(model);
    model.layers.front().mlp = MlpKind::kDense;
  }
  return model;
}

constexpr bool gates_heads(const ModelConfig& config, int32_t /*layer*/) {
  return config.gates_heads;
}
constexpr bool gates_columns(const ModelConfig& config, int32_t /*layer*/) {
  return !config.gates_heads;
}

constexpr auto kLagunaFields = join_fields(
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read_or_null("layer_types"),
        read_or_null("mlp_layer_types"),
        read_or_null("sliding_window"),
        read_or_null("num_attention_heads_per_layer"),
        read("gating"),
        read("num_experts"),
        read("num_experts_per_tok"),
        read("moe_intermediate_size"),
        read("shared_expert_intermediate_size"),
        read("moe_routed_scaling_factor"),
        harmless_if("moe_apply_router_weight_on_input",
                    "[false]",
                    "what experts give is weighed, not what they read"),
        harmless_if("moe_router_logit_softcapping", "[0, 0.0]", "logits of routers have no cap"),
        harmless_if("norm_topk_prob", "[true]", "weights of experts are normalised"),
        harmless("router_aux_loss_coef", kTrainsRouter),
        harmless("output_router_logits", kTrainsRouter),
        harmless("partial_rotary_factor", "each kind of layer has its own in rope_parameters"),
    }),
    kDecoderFields);

constexpr auto kLagunaNames = std::to_array<std::string_view>({"LagunaForCausalLM"});
constexpr auto kLagunaTypes = std::to_array<std::string_view>({"laguna"});

constexpr auto kLagunaTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 kLlamaAttentionTensors,
                 kLlamaQkvBiasTensors,
                 kLlamaOBiasTensors,
                 kQkNormTensors,
                 kLlamaMlpTensors,
                 kExpertTensors,
                 std::to_array<TensorSpec>({
                     {Role::kOutputGate, "model.layers.{layer}.self_attn.g_proj.weight",
                      Dim::kHeads, Dim::kHidden, Split::kRows, gates_heads},
                     {Role::kOutputGate, "model.layers.{layer}.self_attn.g_proj.weight", Dim::kQ,
                      Dim::kHidden, Split::kRows, gates_columns},
                     {Role::kChoiceBias, "model.layers.{layer}.mlp.experts.e_score_correction_bias",
                      Dim::kOne, Dim::kExperts, Split::kNone, has_choice_bias},
                     {Role::kSharedGate, "model.layers.{layer}.mlp.shared_expert.gate_proj.weight",
                      Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
                     {Role::kSharedUp, "model.layers.{layer}.mlp.shared_expert.up_proj.weight",
                      Dim::kSharedIntermediate, Dim::kHidden, Split::kRows, has_shared_expert},
                     {Role::kSharedDown, "model.layers.{layer}.mlp.shared_expert.down_proj.weight",
                      Dim::kHidden, Dim::kSharedIntermediate, Split::kColumns, has_shared_expert},
                 }));

// As `transformers` calls them within.
constexpr auto kLagunaRenames = std::to_array<TensorRename>({
    {".mlp.shared_experts.", ".mlp.shared_expert."},
});

}  // namespace

extern const Architecture kLaguna;
constexpr Architecture kLaguna = {
    .names = kLagunaNames,
    .model_types = kLagunaTypes,
    .prefix = "model.",
    .read_config = read_laguna,
    .fields = kLagunaFields,
    .tensors = kLagunaTensors,
    .renames = kLagunaRenames,
    .ignored = kRotaryTables,
};

}  // namespace tgi
