// The OpenAI routes: /v1/chat/completions and /v1/completions, whole or streamed. Field sets are
// TGI's and OpenAI's together, so that the clients of both read them.
#pragma once

#include <memory>

#include "cmd/http/message.h"
#include "cmd/http/openai_body.h"
#include "cmd/http/service.h"

namespace tgi::http {

// Throw ApiError and ClientGone. A request to stream that is refused before its first token gets
// the refusal's status as well.
Response chat_completions(std::shared_ptr<Scope> scope, const ChatBody& body);
Response completions(std::shared_ptr<Scope> scope, const CompletionBody& body);

}  // namespace tgi::http
