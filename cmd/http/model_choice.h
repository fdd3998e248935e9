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
// for a name that neither a model had when it was last asked nor an adapter. A model that was never
// loaded, so that its limits are not known, is loaded. Throws ApiError where that fails.
void choose_served_model(Scope& scope, const std::string& name);

// Of `?model=`, where no body names a model: a name that is no model's is refused with a 404, and
// nothing is loaded.
void choose_queried_model(Scope& scope, const std::string& name);

// Has the scope's model loaded, if it is loaded on demand, and says how long it stays (as in
// ipc::KeepParams). Throws ApiError.
void keep_model(const Scope& scope, std::optional<double> keep_alive_seconds);

// What the daemon serves now.
std::shared_ptr<const CurrentOptions::All> models_now(Service& service);

}  // namespace tgi::http
