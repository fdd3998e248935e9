// Rotary embedding parameters from config.json, in both spellings: `rope_theta` + `rope_scaling`
// {type | rope_type, ...} of older files and `rope_parameters` {rope_type, rope_theta, ...} of
// newer ones.
//
// Source: the RoPE scaling functions of `transformers`, computed in float32 where it does; the
// methods are those of https://arxiv.org/abs/2309.00071 (dynamic NTK, YaRN), of Llama 3.1, and
// https://arxiv.org/abs/2306.15595 (linear).
#pragma once

#include "base/json.h"
#include "engine/model/model_config.h"

namespace tgi {

// Sets model.rope for rotary embeddings over the whole head, and widens model.max_positions to the
// context that the scaling is for.
// REQUIRES: head_dim and max_positions are set.
// Throws kInvalidArgument for missing or senseless parameters, kUnsupported for an unknown type
// (listing the known ones).
void read_rope(const JsonReader& config, ModelConfig& model);

}  // namespace tgi
