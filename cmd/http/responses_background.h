// Answers of /v1/responses that are made while nobody waits for them.
#pragma once

#include <functional>
#include <memory>

#include "cmd/http/event_log.h"
#include "cmd/http/generation.h"
#include "cmd/http/responses_body.h"
#include "cmd/http/service.h"

namespace tgi::http {

// Asks the daemon. Throws ApiError and ClientGone.
using AskDaemon = std::function<std::shared_ptr<Generation>(const std::shared_ptr<Scope>& scope)>;

// Begins one, and tells that it is queued; where it is to be streamed, its events from the first
// on, which go on without the client too.
Response begin_in_background(const std::shared_ptr<Scope>& scope,
                             ResponsesAsk ask,
                             const AskDaemon& ask_daemon);

// The events of one, from that of the number on.
Response follow_events(const std::shared_ptr<Scope>& scope,
                       std::shared_ptr<EventLog> log,
                       size_t first);

}  // namespace tgi::http
