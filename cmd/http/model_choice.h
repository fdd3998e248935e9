// Which of several models a request is for. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cmd/http/service.h"

namespace tgi::http {

// The text that `model` has in the JSON object `body`: nothing where it has none, or where the body
// is no JSON up to there. What comes after it is not read.
std::optional<std::string> model_of_body(std::string_view body);

// Makes the scope's request one for the model of that name, if there is one. The daemon is asked
// for a name that neither a model had when it was last asked nor an adapter.
void choose_served_model(Scope& scope, const std::string& name);

// What the daemon serves now.
std::shared_ptr<const CurrentOptions::All> models_now(Service& service);

}  // namespace tgi::http
