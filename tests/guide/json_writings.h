// The texts of a JSON value as the grammar of a schema writes it.
#pragma once

#include <string>
#include <vector>

#include "base/nlohmann_json.h"

namespace tgi::guide {

// Compact; numbers without exponents and integers without a point. The members of each object in
// all orders where they are few, because the order is the schema's; at most 5000 texts.
std::vector<std::string> json_writings(const nlohmann::ordered_json& value);

}  // namespace tgi::guide
