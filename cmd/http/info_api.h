// The routes that tell something and generate nothing. All throw ApiError.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cmd/http/native_body.h"
#include "cmd/http/openai_body.h"
#include "cmd/http/service.h"

namespace tgi::http {

Response info(std::shared_ptr<Scope> scope, const Request& request);
Response health(std::shared_ptr<Scope> scope, const Request& request);
Response metrics_page(std::shared_ptr<Scope> scope, const Request& request);
Response models(std::shared_ptr<Scope> scope, const Request& request);
Response one_model(std::shared_ptr<Scope> scope, const Request& request);

// Clients of Anthropic's API name its version with every request, and know its forms alone.
bool is_for_anthropic(const Request& request);

// What the daemon serves: `model` is set. Throws ApiError, 503 where it serves none.
ipc::Status ask_status(const Scope& scope);

// The tokens of a prompt or a chat, by the daemon.
ipc::TokenizeResult ask_tokens(const Scope& scope, ipc::TokenizeParams params);

// The text of tokens, by the daemon.
std::string ask_text(const Scope& scope, std::vector<int32_t> ids);

// Of the chat that a request would show.
int64_t count_tokens(const Scope& scope, const ipc::GenerateRequest& request);

Response tokenize(Scope& scope, const TokenizeBody& body);
Response chat_tokenize(Scope& scope, const ChatBody& body);

}  // namespace tgi::http
