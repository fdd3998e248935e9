// TGI's own routes that generate: /, /generate, /generate_stream. Their answers, headers and events
// are TGI's to the field.
#pragma once

#include <memory>

#include "cmd/http/message.h"
#include "cmd/http/native_body.h"
#include "cmd/http/service.h"

namespace tgi::http {

// A JSON object or {"error", ...}. `in_array`: wrapped as on /. Throws ApiError and ClientGone.
Response generate(std::shared_ptr<Scope> scope, const GenerateBody& body, bool in_array);

// Always 200: what goes wrong is an event. Never throws.
Response generate_stream(std::shared_ptr<Scope> scope, const GenerateBody& body);

}  // namespace tgi::http
