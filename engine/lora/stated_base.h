// Whether a model is the one that an adapter says it was made for.
#pragma once

#include <optional>
#include <string>

#include "engine/model/architecture.h"

namespace tgi {

// `stated`: ORG/NAME of the hub or a folder, as the adapter has it; "": it says nothing. `served`:
// the path of the model's folder or file. Nothing: their names agree. Else what is to be told: that
// they do not, while nothing shows that it matters. Throws kInvalidArgument where the config of the
// stated model is on this machine (its folder, or beside the model in the cache of the hub) and of
// another family.
std::optional<std::string> doubt_about_base(const std::string& stated,
                                            const std::string& served,
                                            const LoadedConfig& model);

}  // namespace tgi
