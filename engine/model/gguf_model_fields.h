// What config.json says of a model, as metadata of a GGUF file.
//
// A file's architecture has its own fields: a reader of engine/gguf asks for those it knows. So
// everything that a model has a value for is offered here under the key that files have it by, and
// who plans the file (engine/quantize/gguf/file_plan.h) leaves out what the reader of the
// architecture did not ask for, and refuses the model when what it read is another one.
#pragma once

#include <string_view>

#include "engine/model/architecture.h"
#include "engine/weights/ggml/gguf_fields.h"

namespace tgi {

// The architecture of GGUF files for models of a class of transformers. Throws kUnsupported listing
// the classes that have one.
std::string_view gguf_architecture_of(const LoadedConfig& model);
// The same; empty: none.
std::string_view find_gguf_architecture(const LoadedConfig& model);

// Puts general.architecture and "ARCHITECTURE.*".
void put_model_fields(const LoadedConfig& model, GgufFields& fields);

}  // namespace tgi
