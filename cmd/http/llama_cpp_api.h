// The routes that llama.cpp's server has beside OpenAI's, and vLLM's small ones of the same names.
// Errors are {"error": {"code", "message", "type"}}.
#pragma once

#include <memory>
#include <span>

#include "cmd/http/llama_cpp_body.h"
#include "cmd/http/routes.h"
#include "cmd/http/service.h"

namespace tgi::http {

std::span<const Route> llama_cpp_routes();
void add_llama_cpp_schemas(OrderedJson& schemas);

OrderedJson llama_cpp_error_json(const ApiError& error);
Response llama_cpp_error(const ApiError& error);
int llama_cpp_status(int ours);
inline constexpr ErrorShape kLlamaCppErrors{llama_cpp_error, "LlamaCppError", false,
                                            llama_cpp_status};

// Throw ApiError and ClientGone.
Response llama_cpp_completion(std::shared_ptr<Scope> scope, const LlamaCppBody& body);
Response llama_cpp_props(std::shared_ptr<Scope> scope, const Request& request);
Response llama_cpp_slots(std::shared_ptr<Scope> scope, const Request& request);
Response apply_template(std::shared_ptr<Scope> scope, const Request& request);
Response detokenize(std::shared_ptr<Scope> scope, const Request& request);

// llama.cpp's and vLLM's bodies of /tokenize, which TGI has too: told apart by their members.
Response llama_cpp_tokenize(Scope& scope, const LlamaCppTokenizeBody& body);
Response vllm_tokenize(Scope& scope, const OrderedJson& body);

}  // namespace tgi::http
