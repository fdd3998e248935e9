// Models and LoRA adapters whose weights are a torch checkpoint only: converted once to
// safetensors, in $XDG_CACHE_HOME/tgi/converted/ORG--NAME/COMMIT. Not in the cache that is shared
// with huggingface_hub: its snapshots hold what the hub has, and nothing else. Nor in a folder of
// the user's own, which is converted to NAME/STATE there: the state is made of its path and of its
// files' sizes and times, so that a folder that changes is converted anew.
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "cmd/download/fetch_model.h"

namespace tgi::download {

// Whether the folder has weights of torch and no safetensors.
bool needs_conversion(const std::string& folder);

// Where its conversion is or will be.
std::string converted_folder(const FetchedModel& model);

// Whether it is there, as a whole.
bool is_converted(const std::string& folder);

// Makes `model.path` the folder of the conversion, which is made when it is not there yet. Nothing
// happens to others, nor when files were chosen by --include.
void use_converted(FetchedModel& model,
                   const FetchRequest& request,
                   FetchObserver& observer,
                   std::stop_token stop);

}  // namespace tgi::download
