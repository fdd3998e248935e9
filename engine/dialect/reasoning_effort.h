// What a request's reasoning_effort says to the chat template.
#pragma once

#include <string>

#include "base/nlohmann_json.h"
#include "engine/dialect/dialect.h"

namespace tgi::dialect {

// Sets the variables by which templates are told whether and how much to reason, those of hybrid
// models and the dialect's own; null: there is no dialect. Variables that are there stay.
void add_reasoning_effort(const ReasoningDialect* dialect,
                          const std::string& effort,
                          nlohmann::ordered_json& variables);

}  // namespace tgi::dialect
