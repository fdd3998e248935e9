// What configs of Cohere's decoders are when they say nothing: the classes in models/cohere,
// models/cohere2 and models/cohere_compass of `transformers`.
#pragma once

#include "engine/model/config_fields.h"

namespace tgi {

inline constexpr DecoderFields kCohereDecoder = {
    .norm_eps = "layer_norm_eps",
    .default_vocab_size = 256000,
    .default_hidden_size = 8192,
    .default_num_layers = 40,
    .default_num_heads = 64,
    .default_intermediate = 22528,
    .default_max_positions = 8192,
    .default_norm_eps = 1e-5,
    .default_tied = true,
    .default_bos = 5,
    .default_eos = 255001,
};

}  // namespace tgi
