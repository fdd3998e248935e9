// tgi download-weights --merge-lora: a LoRA adapter that is here, its base beside it, and the two
// as one checkpoint.
#pragma once

#include <optional>
#include <string>

#include "cmd/session.h"

namespace tgi {

// What an adapter says of the model that it was made for.
struct LoraBase {
  std::string model;
  std::string revision;  // empty: not said
};

// Nothing where the folder, or the GGUF file, holds no adapter: what is in a GGUF file the daemon
// tells. Throws kInvalidArgument where it says no model.
std::optional<LoraBase> base_of_lora(Session& session, const std::string& path);

// The folder of both merged: $XDG_CACHE_HOME/tgi/merged/NAME/STATE, where the state is made of the
// paths, sizes and times of what it was made of. The daemon writes it when it is not there; it is
// whole or not there.
std::string merge_lora(Session& session, const std::string& adapter, const std::string& base);

}  // namespace tgi
