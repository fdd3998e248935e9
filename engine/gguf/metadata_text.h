// The metadata of a GGUF file for people to read: each value as a line of text, long ones by their
// beginning or their number.
#pragma once

#include <string>

#include "engine/weights/ggml/gguf_file.h"

namespace tgi::gguf {

// The file among those of a model that has them: {"llama.block_count": "22", ...}. Readers of a
// folder need not know where it comes from.
inline constexpr const char* kMetadataTextFile = "metadata_text.json";

std::string metadata_text(const GgufMetadata& metadata);

}  // namespace tgi::gguf
