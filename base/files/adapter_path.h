// Whether a path may hold an adapter, from names and a file's first bytes alone: what of it is an
// adapter the daemon says.
#pragma once

#include <string>

namespace tgi {

// A folder of PEFT's. One with a model's weights too is the model, with an adapter of its own
// beside it; config.json alone says nothing: trainers put the base's there.
bool is_peft_folder(const std::string& path);

// A folder of PEFT, a GGUF file, or a folder with a GGUF file and no model.
bool may_hold_adapter(const std::string& path);

}  // namespace tgi
