// Presets that are written as TOML: the lines of the Modelfile that says the same.
#pragma once

#include <string_view>
#include <vector>

#include "base/files/modelfile.h"

namespace tgi::ipc {

// Throws kInvalidArgument with the line and the column: no TOML, a name that there is not (with
// those there are), a value of another type. What the values have to be is known to
// base/files/preset.h.
std::vector<ModelfileLine> lines_of_toml(std::string_view text);

}  // namespace tgi::ipc
