// What llama.cpp's loaders take of a GGUF file, beyond what a reader of this program needs to know
// of it: a tensor that they don't ask for, or ask for in vain, makes them refuse the whole file,
// and some of what a model has they don't compute. A model that breaks a rule isn't written: the
// file is for them too.
//
// Source: https://github.com/ggml-org/llama.cpp, src/models/ARCHITECTURE.cpp of October 2026.
#pragma once

#include "engine/model/model_config.h"
#include "engine/quantize/gguf/file_plan.h"

namespace tgi {

// Throws kUnsupported saying which rule of the plan's architecture is broken.
void check_loader_rules(const GgufFilePlan& plan, const ModelConfig& config);

}  // namespace tgi
