// `tgi quantize MODEL OUT.gguf`: a checkpoint in, a file for llama.cpp, ollama and this program
// out. Two passes over the calibration text: one through the source, a layer at a time, which says
// how much each column of a matrix is used before its blocks are chosen, and one through the file
// itself as it was written, which says how near it is.
//
// Models whose layers can't be run alone (experts, states, latent attention) are written without
// either: all columns count alike, and nothing is measured.
#pragma once

#include <string_view>

#include "engine/quantize/quantizer.h"

namespace tgi {

// Whether a format of `tgi quantize` is one of GGUF files.
bool is_gguf_format(std::string_view name);

// As quantize_checkpoint, with `options.folder` the file to write.
QuantizeResult quantize_checkpoint_to_gguf(const QuantizeJob& job,
                                           const LoadedConfig& model,
                                           const Checkpoint& checkpoint,
                                           const Tokenizer& tokenizer);

}  // namespace tgi
