// Anthropic's Messages: POST /v1/messages, whole or streamed, and POST /v1/messages/count_tokens.
#pragma once

#include <memory>

#include "cmd/http/anthropic_body.h"
#include "cmd/http/message.h"
#include "cmd/http/service.h"

namespace tgi::http {

// Throw ApiError and ClientGone. A request to stream that is refused before its first token gets
// the refusal's status as well. `max_tokens` that do not fit behind the prompt are no reason to
// refuse: such an answer may end with model_context_window_exceeded.
Response create_message(std::shared_ptr<Scope> scope, const MessagesBody& body);

Response count_message_tokens(Scope& scope, const CountTokensBody& body);

}  // namespace tgi::http
