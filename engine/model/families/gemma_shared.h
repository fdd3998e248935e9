// What Gemma 3n and 4 have in common: layers that read the keys and values of another one, rows for
// each layer, norms of heads of q, k and v; and what stands beside the text model of a checkpoint
// that sees and hears.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/multimodal_fields.h"

namespace tgi {

// The last num_kv_shared_layers layers. REQUIRES: the windows and heads of all layers.
inline void read_shared_kv(const JsonReader& config, int64_t default_shared, ModelConfig& model) {
  const int64_t num_shared = config.integer_or("num_kv_shared_layers", default_shared);
  const std::string path = config.path_of("num_kv_shared_layers");
  if (num_shared < 0 || num_shared >= model.num_layers) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: {} of {} layers; expected 0 to {}: a layer without keys and values "
                    "needs one before it that has them",
                    path, num_shared, model.num_layers, model.num_layers - 1));
  }
  const auto first = static_cast<int32_t>(model.num_layers - num_shared);
  for (int32_t i = first; i < model.num_layers; ++i) {
    LayerPlan& layer = model.layers[static_cast<size_t>(i)];
    for (int32_t before = first - 1; before >= 0 && layer.kv_layer == kOwnKv; --before) {
      const LayerPlan& other = model.layers[static_cast<size_t>(before)];
      if ((other.sliding_window > 0) == (layer.sliding_window > 0)) layer.kv_layer = before;
    }
    if (layer.kv_layer == kOwnKv) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: layer {} has to read keys and values of a layer of its kind "
                              "before layer {}, and there is none",
                              path, i, first));
    }
    if (kv_heads_of(model, layer.kv_layer) != kv_heads_of(model, i)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: layer {} reads keys and values of layer {}, whose heads are of "
                              "another size",
                              path, i, layer.kv_layer));
    }
  }
  for (LayerPlan& layer : model.layers) layer.divides_v = layer.has_own_kv();
}

inline constexpr auto kSoundAndImageFields =
    join_fields(kMultimodalFields,
                std::to_array<KnownField>({
                    harmless("boi_token_id", kImages),
                    harmless("eoi_token_id", kImages),
                    harmless("vision_soft_tokens_per_image", kImages),
                    harmless("audio_config", kSounds),
                    harmless("boa_token_id", kSounds),
                    harmless("eoa_token_id", kSounds),
                    harmless("eoa_token_index", kSounds),
                    harmless("audio_token_id", kSounds),
                }));

inline constexpr auto kSoundAndImageIgnored = std::to_array<std::string_view>({
    "vision_tower.*",
    "audio_tower.*",
    "embed_vision.*",
    "embed_audio.*",
    "vision_embedder.*",
});

constexpr bool has_own_kv(const ModelConfig& config, int32_t layer) {
  return config.layers[static_cast<size_t>(layer)].has_own_kv();
}
// Layers that see everything may have no matrix of v.
constexpr bool takes_keys_as_values(const ModelConfig& config, int32_t layer) {
  return has_own_kv(config, layer) && config.layers[static_cast<size_t>(layer)].keys_are_values;
}
constexpr bool has_own_values(const ModelConfig& config, int32_t layer) {
  return has_own_kv(config, layer) && !takes_keys_as_values(config, layer);
}
constexpr bool has_k_bias(const ModelConfig& config, int32_t layer) {
  return config.attention_bias && has_own_kv(config, layer);
}
constexpr bool has_v_bias(const ModelConfig& config, int32_t layer) {
  return config.attention_bias && has_own_values(config, layer);
}
constexpr bool has_k_bias_as_v(const ModelConfig& config, int32_t layer) {
  return config.attention_bias && takes_keys_as_values(config, layer);
}
constexpr bool has_layer_inputs(const ModelConfig& config, int32_t /*layer*/) {
  return config.layer_inputs.size > 0;
}

inline constexpr auto kSharedKvAttentionTensors = std::to_array<TensorSpec>({
    {Role::kQ, "model.layers.{layer}.self_attn.q_proj.weight", Dim::kQ, Dim::kHidden, Split::kRows},
    {Role::kK, "model.layers.{layer}.self_attn.k_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows,
     has_own_kv},
    {Role::kV, "model.layers.{layer}.self_attn.v_proj.weight", Dim::kKv, Dim::kHidden, Split::kRows,
     has_own_values},
    {.role = Role::kV,
     .name = "model.layers.{layer}.self_attn.k_proj.weight",
     .rows = Dim::kKv,
     .cols = Dim::kHidden,
     .split = Split::kRows,
     .only_if = takes_keys_as_values,
     .is_counted = false},
    {Role::kQBias, "model.layers.{layer}.self_attn.q_proj.bias", Dim::kOne, Dim::kQ, Split::kRows,
     has_attention_bias},
    {Role::kKBias, "model.layers.{layer}.self_attn.k_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     has_k_bias},
    {Role::kVBias, "model.layers.{layer}.self_attn.v_proj.bias", Dim::kOne, Dim::kKv, Split::kRows,
     has_v_bias},
    {.role = Role::kVBias,
     .name = "model.layers.{layer}.self_attn.k_proj.bias",
     .rows = Dim::kOne,
     .cols = Dim::kKv,
     .split = Split::kRows,
     .only_if = has_k_bias_as_v,
     .is_counted = false},
    {Role::kQNorm, "model.layers.{layer}.self_attn.q_norm.weight", Dim::kOne, Dim::kHeadDim},
    {Role::kKNorm, "model.layers.{layer}.self_attn.k_norm.weight", Dim::kOne, Dim::kHeadDim,
     Split::kNone, has_own_kv},
});

inline constexpr auto kLayerInputTensors = std::to_array<TensorSpec>({
    {Role::kLayerInputTable, "model.embed_tokens_per_layer.weight", Dim::kLayerInputVocab,
     Dim::kLayerInputs, Split::kNone, has_layer_inputs},
    {Role::kLayerInputIn, "model.per_layer_model_projection.weight", Dim::kLayerInputs,
     Dim::kHidden, Split::kNone, has_layer_inputs},
    {Role::kLayerInputNorm, "model.per_layer_projection_norm.weight", Dim::kOne, Dim::kLayerInput,
     Split::kNone, has_layer_inputs},
    {Role::kLayerInputGate, "model.layers.{layer}.per_layer_input_gate.weight", Dim::kLayerInput,
     Dim::kHidden, Split::kNone, has_layer_inputs},
    {Role::kLayerInputOut, "model.layers.{layer}.per_layer_projection.weight", Dim::kHidden,
     Dim::kLayerInput, Split::kNone, has_layer_inputs},
    {Role::kLayerInputPostNorm, "model.layers.{layer}.post_per_layer_input_norm.weight", Dim::kOne,
     Dim::kHidden, Split::kNone, has_layer_inputs},
});

// Layers that read another one's keys and values may be stored with matrices of their own, which
// nothing reads; and norms without weights are not stored.
inline constexpr auto kUnreadKv = std::to_array<std::string_view>({
    ".self_attn.k_proj.weight",
    ".self_attn.v_proj.weight",
    ".self_attn.k_norm.weight",
});

}  // namespace tgi
