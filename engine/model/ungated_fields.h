// What Llama's block with an MLP without a gate shares between its families.
#pragma once

#include <array>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {

inline ModelConfig read_ungated_config(const JsonReader& config,
                                       const DecoderFields& fields,
                                       const RopeTraits& rope = {}) {
  ModelConfig model = read_decoder_config(config, fields);
  model.gated_mlp = false;
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model, rope);
  refuse_windows(config, model);
  return model;
}

inline constexpr auto kUngatedFields = join_fields(kDecoderFields,
                                                   std::to_array<KnownField>({
                                                       read_or_null("attention_bias"),
                                                       read_or_null("mlp_bias"),
                                                       read_or_null("layer_types"),
                                                       read_or_null("sliding_window"),
                                                       read_or_null("use_sliding_window"),
                                                   }));

inline constexpr auto kUngatedTensors = join_tensors(kLlamaOuterTensors,
                                                     kLlamaNormTensors,
                                                     kLlamaAttentionTensors,
                                                     kLlamaQkvBiasTensors,
                                                     kLlamaOBiasTensors,
                                                     kUngatedMlpTensors);

}  // namespace tgi
