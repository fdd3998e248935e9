// A GGUF file as if it were the folder of the model it was made from: config.json, tokenizer and
// chat template come out of its metadata, the index of engine/weights/ggml/gguf_checkpoint.h beside
// them names its tensors.
#pragma once

#include <memory>
#include <string>

#include "base/files/file_source.h"

namespace tgi {

// `path` is a file, or one of those that a model was split into, whose others lie beside it. Throws
// kNotFound when it, or one of them, is not there, kInvalidArgument for a malformed file,
// kUnsupported naming an architecture, a field, a tensor or a tokenizer that this build does not
// know.
std::unique_ptr<FileSource> open_gguf(const std::string& path);

}  // namespace tgi
