// In what two models differ, before their weights.
#pragma once

#include <string>
#include <vector>

#include "engine/model/model_config.h"

namespace tgi {

// Names of the members of ModelConfig whose values differ, with both values where they are single
// ones. Numbers may differ by the rounding of the one that was stored. What a file is called by is
// left out: the name of the class, the type of plain weights, tokens that begin and end a text.
std::vector<std::string> config_differences(const ModelConfig& source, const ModelConfig& other);

}  // namespace tgi
