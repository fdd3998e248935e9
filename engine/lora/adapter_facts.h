// The tensors of an adapter, and what they and its config tell without a base model.
#pragma once

#include <memory>

#include "base/files/file_source.h"
#include "engine/lora/adapter_files.h"

namespace tgi {

// `model`: null where nobody says which. Throws kNotFound without a file, and what
// open_gguf_adapter throws.
std::unique_ptr<Checkpoint> open_adapter_tensors(const FileSource& files,
                                                 const LoadedConfig* model,
                                                 AdapterConfig& config);

AdapterFacts adapter_facts(const AdapterConfig& config, const Checkpoint& tensors);

}  // namespace tgi
