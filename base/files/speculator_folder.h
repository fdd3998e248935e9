// A folder with heads that draft for a model and no model itself: what text-generation-inference
// takes in place of a model, as the heads say for which one they were made; so do those of vLLM's
// speculators.
#pragma once

#include <optional>
#include <string>

namespace tgi {

// The model that the heads of `folder` draft for: the path of a folder, where there is one of that
// name beside or below theirs, else the name as config.json has it. Nothing: these are no such
// heads. Throws kInvalidArgument where the heads name no model.
std::optional<std::string> base_of_speculator(const std::string& folder);

}  // namespace tgi
