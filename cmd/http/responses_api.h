// OpenAI's Responses: POST /v1/responses, whole or streamed, and the routes of the answers that are
// kept.
#pragma once

#include <memory>

#include "cmd/http/message.h"
#include "cmd/http/responses_body.h"
#include "cmd/http/service.h"

namespace tgi::http {

// Throw ApiError and ClientGone. A request to stream that is refused before its first token gets
// the refusal's status as well.
Response create_response(std::shared_ptr<Scope> scope, const ResponsesBody& body);

// How many tokens its conversation has, of the same body; `input` may be left out.
Response count_response_tokens(Scope& scope, const ResponsesBody& body);

// OpenAI's compaction of a conversation, which there is none of: always throws.
Response refuse_compact(std::shared_ptr<Scope> scope, const Request& request);

// Of an answer that is kept; 404 where there is none of that name.
Response retrieve_response(std::shared_ptr<Scope> scope, const Request& request);
Response delete_response(std::shared_ptr<Scope> scope, const Request& request);
Response list_input_items(std::shared_ptr<Scope> scope, const Request& request);
// Ends one that is made in the background, and tells what became of it; others are refused.
Response cancel_response(std::shared_ptr<Scope> scope, const Request& request);

}  // namespace tgi::http
