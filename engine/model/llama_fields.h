// What families of Llama's block share, with an MLP that has a gate or none.
#pragma once

#include <array>

#include "engine/model/architecture.h"
#include "engine/model/config_fields.h"
#include "engine/model/decoder_tensors.h"
#include "engine/model/known_fields.h"
#include "engine/model/rope.h"

namespace tgi {

inline ModelConfig read_llama_block(const JsonReader& config,
                                    const DecoderFields& fields,
                                    const RopeTraits& rope = {}) {
  ModelConfig model = read_decoder_config(config, fields);
  model.attention_bias = config.boolean_or("attention_bias", false);
  model.mlp_bias = config.boolean_or("mlp_bias", false);
  read_rope(config, model, rope);
  refuse_windows(config, model);
  return model;
}

inline constexpr auto kLlamaBlockFields = join_fields(kDecoderFields,
                                                      std::to_array<KnownField>({
                                                          read_or_null("attention_bias"),
                                                          read_or_null("mlp_bias"),
                                                          read_or_null("layer_types"),
                                                          read_or_null("sliding_window"),
                                                          read_or_null("use_sliding_window"),
                                                      }));

// Biases are where the config says so.
inline constexpr auto kLlamaBlockTensors = join_tensors(kLlamaOuterTensors,
                                                        kLlamaNormTensors,
                                                        kLlamaAttentionTensors,
                                                        kLlamaQkvBiasTensors,
                                                        kLlamaOBiasTensors,
                                                        kLlamaMlpTensors,
                                                        kLlamaMlpBiasTensors);

// With an MLP without a gate.
inline ModelConfig read_ungated_config(const JsonReader& config,
                                       const DecoderFields& fields,
                                       const RopeTraits& rope = {}) {
  ModelConfig model = read_llama_block(config, fields, rope);
  model.gated_mlp = false;
  return model;
}

inline constexpr auto kUngatedTensors = join_tensors(kLlamaOuterTensors,
                                                     kLlamaNormTensors,
                                                     kLlamaAttentionTensors,
                                                     kLlamaQkvBiasTensors,
                                                     kLlamaOBiasTensors,
                                                     kUngatedMlpTensors);

}  // namespace tgi
