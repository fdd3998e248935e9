// tgi download-weights --merge-lora: a LoRA adapter that is here, its base beside it, and the two
// as one checkpoint.
#pragma once

#include <string>

#include "cmd/download/run_fetch.h"
#include "cmd/session.h"

namespace tgi {

// Whether the folder holds an adapter.
bool is_lora_folder(const std::string& folder);

// The model that the adapter says it was made for. Throws kInvalidArgument where it says none.
download::FetchRequest base_request(const download::FetchRequest& request,
                                    const std::string& adapter);

// The folder of both merged: $XDG_CACHE_HOME/tgi/merged/NAME/STATE, where the state is made of the
// paths, sizes and times of what it was made of. The daemon writes it when it is not there; it is
// whole or not there.
std::string merge_lora(Session& session, const std::string& adapter, const std::string& base);

}  // namespace tgi
