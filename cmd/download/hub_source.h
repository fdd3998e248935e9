// Models of the Hugging Face Hub, or of a server that speaks its API: a revision is resolved to a
// commit once, and everything is read at that commit, so that a branch that moves meanwhile can't
// mix two states.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/download/hub_env.h"
#include "cmd/download/hub_names.h"
#include "cmd/download/source.h"

namespace tgi::download {

std::unique_ptr<Source> open_hub(HubName name, const HubSettings& settings);

// The pages of /api/models/REPO/tree/COMMIT?recursive=true. Throws kInvalidArgument naming what is
// wrong; every path is checked.
void read_tree_page(const std::string& json,
                    const std::string& where,
                    std::vector<RemoteFile>& files);

// The address of rel="next" in a Link header; empty: none.
std::string next_page(const std::string& link);

}  // namespace tgi::download
