// MiMo V2 Flash: values that are shorter than their keys, and in the layers with a window more KV
// heads, a sink for each head and another rotation; behind the first layer GLM-4.5's experts
// without shared ones. Source: models/mimo_v2_flash in `transformers`, and what the published files
// call their fields and tensors.
#include <fmt/format.h>

#include <algorithm>
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

// The rotations, of fields that stand by themselves in published files.
Json default_ropes(const JsonReader& config) {
  const double partial = config.number_or("partial_rotary_factor", 0.334);
  const auto of = [&](std::string_view theta, double fallback) {
    return Json{{"rope_type", "default"},
                {"rope_theta", config.number_or(theta, fallback)},
                {"partial_rotary_factor", partial}};
  };
  return {{"full_attention", of("rope_theta", 5e6)},
          {"sliding_attention", of("swa_rope_theta", 1e4)}};
}

// The config as the class in `transformers` writes it.
Json with_own_spelling(const JsonReader& config) {
  Json out = config.json();
  name_layers(config, "hybrid_layer_pattern", "layer_types", "full_attention", "sliding_attention",
              out);
  name_layers(config, "moe_layer_freq", "mlp_layer_types", "dense", "sparse", out);
  if (config.has("sliding_window_size")) {
    out["sliding_window"] = int64_t{read_size(config, "sliding_window_size", 0, kMaxPositions)} + 1;
  }
  if (!config.has("rope_parameters")) out["rope_parameters"] = default_ropes(config);
  out.erase("partial_rotary_factor");
  return out;
}

void read_value_dim(const JsonReader& config, ModelConfig& model) {
  const int32_t size = read_size(config, "v_head_dim", 128, kMaxHeadDim);
  if (int64_t{model.num_heads} * size > kMaxQuerySize) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: {} heads of {} are more than {}", config.path_of("v_head_dim"),
                            model.num_heads, size, kMaxQuerySize));
  }
  if (size != model.head_dim) model.value_dim = size;
}

// Of layers with a window.
void read_windowed_kv_heads(const JsonReader& config, ModelConfig& model) {
  constexpr std::string_view kKey = "swa_num_key_value_heads";
  const int32_t count = read_size(config, kKey, int64_t{2} * model.num_kv_heads, kMaxHeads);
  for (LayerPlan& layer : model.layers) {
    if (layer.sliding_window == 0 || count == model.num_kv_heads) continue;
    layer.num_kv_heads = count;
    if (model.num_heads % count != 0) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{}: layers with a window have {} KV heads{}, of which {} heads are "
                      "no multiple",
                      config.path_of(kKey), count,
                      config.has(kKey) ? "" : ", twice as many as the others", model.num_heads));
    }
  }
}

// What layers with a window have as the others do, where it is said of them again.
void check_windowed_heads(const JsonReader& config, const ModelConfig& model) {
  const int32_t value_dim = kv_heads_of(model, -1).value_cols();
  const auto check = [&](std::string_view key, int32_t expected) {
    const int64_t found = config.integer_or(key, expected);
    if (found == expected) return;
    throw Error(Code::kUnsupported,
                fmt::format("{}: {} is not supported, expected {}, as in layers without a window",
                            config.path_of(key), found, expected));
  };
  check("swa_num_attention_heads", model.num_heads);
  check("swa_head_dim", model.head_dim);
  check("swa_v_head_dim", value_dim);
}

ModelConfig read_mimo_v2_flash(const JsonReader& given) {
  const Json json = with_own_spelling(given);
  const JsonReader config = given.in_place(json);
  ModelConfig model = read_decoder_config(config, {.default_vocab_size = 152576,
                                                   .default_num_layers = 48,
                                                   .default_num_heads = 64,
                                                   .default_num_kv_heads = 4,
                                                   .default_head_dim = 192,
                                                   .default_intermediate = 16384,
                                                   .default_max_positions = 131072,
                                                   .default_norm_eps = 1e-5,
                                                   .default_bos = 1,
                                                   .default_eos = -1});
  model.attention_bias = config.boolean_or("attention_bias", false);
  // Of values; what attention gives is as linear in them as what comes of it.
  model.attention_output_multiplier =
      read_optional_positive(config, "attention_value_scale", 0.707).value_or(1.0F);
  read_value_dim(config, model);
  read_windows(config, {.default_window = 129, .default_pattern = 6}, model);
  if (!config.has("layer_types") && !model.layers.empty()) model.layers.front().sliding_window = 0;
  read_windowed_kv_heads(config, model);
  check_windowed_heads(config, model);
  constexpr RopeTraits kRope = {.takes_partial = true, .default_partial = 0.334};
  RopeTraits with_window = kRope;
  RopeTraits without = kRope;
  with_window.layer_type = "sliding_attention";
  without.layer_type = "full_attention";
  read_rope_by_window(config, model, with_window, without);
  read_deepseek_experts(config,
                        {.default_num_experts = 256,
                         .default_top_k = 8,
                         .default_intermediate = 2048,
                         .default_num_shared = 0},
                        model);
  if (!read_mlp_layer_types(config, model)) {
    use_experts_in_all_layers(model);
    model.layers.front().mlp = MlpKind::kDense;
  }
  return model;
}

constexpr std::string_view kWindowedAlone = "layers with a window have sinks, and no others";

constexpr std::string_view kRopesApart = "rope_parameters says it for each kind of layer";

constexpr auto kMiMoV2FlashFields = join_fields(
    std::to_array<KnownField>({
        read_or_null("attention_bias"),
        read_or_null("attention_value_scale"),
        read("v_head_dim"),
        read_or_null("sliding_window"),
        read_or_null("sliding_window_size"),
        read_or_null("layer_types"),
        read_or_null("hybrid_layer_pattern"),
        read_or_null("mlp_layer_types"),
        read_or_null("moe_layer_freq"),
        read("swa_num_attention_heads"),
        read("swa_num_key_value_heads"),
        read("swa_head_dim"),
        read("swa_v_head_dim"),
        read("swa_rope_theta"),
        harmless_if("add_swa_attention_sink_bias", "[true]", kWindowedAlone),
        harmless_if("add_full_attention_sink_bias", "[false]", kWindowedAlone),
        harmless("attention_chunk_size", "the window says what a token sees"),
        harmless_if("hybrid_block_size", "[]", "hybrid_layer_pattern says which layers have one"),
        harmless_if("attention_projection_layout", "[\"split\"]", "q, k and v are matrices apart"),
        read("n_routed_experts"),
        harmless_if("n_shared_experts", "[0]", "all experts are chosen"),
        read("num_experts_per_tok"),
        read("norm_topk_prob"),
        read("moe_intermediate_size"),
        read("n_group"),
        read("topk_group"),
        read_or_null("routed_scaling_factor"),
        harmless_if("scoring_func", "[\"sigmoid\"]", "scores are sigmoids"),
        harmless_if(
            "topk_method", "[\"noaux_tc\"]", "groups are as good as their two best experts"),
        harmless("router_aux_loss_coef", kTrainsRouter),
        harmless("output_router_logits", kTrainsRouter),
        harmless("num_nextn_predict_layers", kOnlyDrafts),
        harmless_if("rope_scaling", "[]", kRopesApart),
        harmless("original_max_position_embeddings", kRopesApart),
    }),
    kDecoderFields);

constexpr auto kMiMoV2FlashAliases =
    std::to_array<FieldAlias>({kDeepSeekExpertAliases[0], {"layernorm_epsilon", "rms_norm_eps"}});

constexpr auto kMiMoV2FlashNames = std::to_array<std::string_view>({"MiMoV2FlashForCausalLM"});
constexpr auto kMiMoV2FlashTypes = std::to_array<std::string_view>({"mimo_v2_flash"});

constexpr bool has_window(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].sliding_window > 0;
}

constexpr auto kMiMoV2FlashTensors =
    join_tensors(kLlamaOuterTensors,
                 kLlamaNormTensors,
                 std::to_array<TensorSpec>({
                     {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ,
                      Dim::kHidden, Split::kRows},
                     {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv,
                      Dim::kHidden, Split::kRows},
                     {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kValues,
                      Dim::kHidden, Split::kRows},
                     {Role::kO, "model.layers.{layer}.self_attn.o_proj.weight", Dim::kHidden,
                      Dim::kHeadValues, Split::kColumns},
                     {Role::kQBias, "model.layers.{layer}.self_attn.q_proj.bias", Dim::kOne,
                      Dim::kQ, Split::kRows, has_attention_bias},
                     {Role::kKBias, "model.layers.{layer}.self_attn.k_proj.bias", Dim::kOne,
                      Dim::kKv, Split::kRows, has_attention_bias},
                     {Role::kVBias, "model.layers.{layer}.self_attn.v_proj.bias", Dim::kOne,
                      Dim::kValues, Split::kRows, has_attention_bias},
                     {Role::kSinks, "model.layers.{layer}.self_attn.attention_sink_bias", Dim::kOne,
                      Dim::kHeads, Split::kRows, has_window},
                     {Role::kChoiceBias, "model.layers.{layer}.mlp.gate.e_score_correction_bias",
                      Dim::kOne, Dim::kExperts, Split::kNone, has_choice_bias},
                 }),
                 kLlamaMlpTensors,
                 kExpertTensors);

constexpr auto kMiMoV2FlashIgnored =
    std::to_array<std::string_view>({".rotary_emb.inv_freq", "mtp.*"});

}  // namespace

extern const Architecture kMiMoV2Flash;
constexpr Architecture kMiMoV2Flash = {
    .names = kMiMoV2FlashNames,
    .model_types = kMiMoV2FlashTypes,
    .prefix = "model.",
    .read_config = read_mimo_v2_flash,
    .fields = kMiMoV2FlashFields,
    .aliases = kMiMoV2FlashAliases,
    .tensors = kMiMoV2FlashTensors,
    .ignored = kMiMoV2FlashIgnored,
};

}  // namespace tgi
