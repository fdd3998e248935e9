// Rotary embedding parameters from config.json, in both spellings: `rope_theta` + `rope_scaling`
// {type | rope_type, ...} of older files and `rope_parameters` {rope_type, rope_theta, ...} of
// newer ones.
//
// Source: the RoPE scaling functions of `transformers`, computed in float32 where it does; the
// methods are those of https://arxiv.org/abs/2309.00071 (dynamic NTK, YaRN), of Llama 3.1, and
// https://arxiv.org/abs/2306.15595 (linear).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/known_fields.h"
#include "engine/model/model_config.h"

namespace tgi {

// What a family says about its rotary embeddings that the config does not.
struct RopeTraits {
  double default_theta = 10000.0;
  std::string_view theta_name = "rope_theta";
  bool interleaved = false;    // pairs of neighbours are rotated, not halves
  bool takes_partial = false;  // else whole heads are rotated, and the config may not say otherwise
  std::string_view partial_name = "partial_rotary_factor";  // outside of rope_parameters
  double default_partial = 1.0;
  int32_t head_dim = 0;  // of the layers that it is for; 0: the model's
  int32_t columns = 0;   // rotated, where the family counts them; 0: by that part of the head
  int64_t default_original_positions = 0;     // of scaling, in tokens; 0: max_position_embeddings
  std::string_view type_of_yarn = "yarn";     // what the type "yarn" means to the family
  std::span<const std::string_view> types{};  // those that it takes; empty: all of every family
  std::string_view own_type{};                // beside those of every family
  // Whose object of rope_parameters is read where each layer type has its own; empty: they have to
  // agree.
  std::string_view layer_type{};
  std::span<const std::string_view>
      layer_types{};  // that there can be; empty: with a window or not
  // Whether rope_theta of an object that is for all layers is not these ones'.
  bool theta_is_outside = false;
  // Whether a scaling that stands in no layer type's object is for these layers too.
  bool is_scaled = true;
  // Whether max_position_embeddings is the context before the scaling; else it counts it.
  bool widens_context = true;
  std::span<const KnownField> fields{};  // of the object, beside those of every family
};

// A config that says nothing of its rope, in either spelling, with `value` as its field `key`.
Json with_default_rope(const Json& config, std::string_view key, const Json& value);

// Adds one to model.ropes and returns its index. Widens model.max_positions to the context that the
// scaling is for.
// REQUIRES: head_dim and max_positions are set.
// Throws kInvalidArgument for missing or senseless parameters, kUnsupported for an unknown type
// (listing the known ones).
int32_t add_rope(const JsonReader& config, const RopeTraits& traits, ModelConfig& model);

// The same, for all layers.
void read_rope(const JsonReader& config, ModelConfig& model, const RopeTraits& traits = {});

// Two of them, for layers with a window and for those without. REQUIRES: read_windows.
void read_rope_by_window(const JsonReader& config,
                         ModelConfig& model,
                         const RopeTraits& with_window,
                         const RopeTraits& without);

// What DeepSeek multiplies the scores with where the rope is scaled: the square of yarn's factor
// for mscale_all_dim; 1 where there is no such field.
float read_score_multiplier(const JsonReader& config, const RopeTraits& traits);

// How queries are scaled by their position: llama_4_scaling_beta and
// original_max_position_embeddings; off where there is no such field.
PositionScale read_query_scale(const JsonReader& config,
                               const ModelConfig& model,
                               const RopeTraits& traits);

}  // namespace tgi
