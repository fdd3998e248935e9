#include "cmd/http/routes.h"

#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "cmd/http/anthropic_api.h"
#include "cmd/http/info_api.h"
#include "cmd/http/kserve_api.h"
#include "cmd/http/llama_cpp_api.h"
#include "cmd/http/lora_api.h"
#include "cmd/http/native_api.h"
#include "cmd/http/ollama_api.h"
#include "cmd/http/openai_api.h"
#include "cmd/http/ranking_api.h"
#include "cmd/http/request_body.h"
#include "cmd/http/responses_api.h"
#include "cmd/http/ui_page.h"
#include "cmd/http/vectors_api.h"
#include "cmd/http/vertex_api.h"

namespace tgi::http {
namespace {

using ipc::OrderedJson;

Response handle_generate(std::shared_ptr<Scope> scope, const Request& request) {
  return generate(std::move(scope), body_of<GenerateBody>(request), false);
}

Response handle_generate_stream(std::shared_ptr<Scope> scope, const Request& request) {
  return generate_stream(std::move(scope), body_of<GenerateBody>(request));
}

// The older API: `stream` in the body, the prompt in the answer, the answer in an array.
Response compatible(std::shared_ptr<Scope> scope, GenerateBody body) {
  if (!body.parameters) body.parameters = default_parameters();
  if (!body.parameters->return_full_text) body.parameters->return_full_text = true;
  return body.stream ? generate_stream(std::move(scope), body)
                     : generate(std::move(scope), body, true);
}

Response handle_root(std::shared_ptr<Scope> scope, const Request& request) {
  const OrderedJson body = parse_body(request);
  if (gives_vectors(*scope)) return answer_by_task(*scope, body);
  return compatible(std::move(scope), read_body<GenerateBody>(body));
}

Response handle_chat(std::shared_ptr<Scope> scope, const Request& request) {
  return chat_completions(std::move(scope), body_of<ChatBody>(request));
}

Response handle_completions(std::shared_ptr<Scope> scope, const Request& request) {
  return completions(std::move(scope), body_of<CompletionBody>(request));
}

// SageMaker's one address: the members tell which of the others is meant.
Response handle_invocations(std::shared_ptr<Scope> scope, const Request& request) {
  const OrderedJson body = parse_body(request);
  if (gives_vectors(*scope)) return answer_by_task(*scope, body);
  if (body.is_object() && body.contains("inputs")) {
    return compatible(std::move(scope), read_body<GenerateBody>(body));
  }
  if (body.is_object() && body.contains("messages")) {
    return chat_completions(std::move(scope), read_body<ChatBody>(body));
  }
  if (body.is_object() && body.contains("prompt")) {
    return completions(std::move(scope), read_body<CompletionBody>(body));
  }
  throw BodyError(422,
                  "Failed to deserialize the JSON body into the target type: expected `inputs`, "
                  "`messages` or `prompt`");
}

Response handle_load_lora(std::shared_ptr<Scope> scope, const Request& request) {
  require_lora_updates(*scope);
  return load_lora(*scope, body_of<LoadLoraBody>(request));
}

Response handle_unload_lora(std::shared_ptr<Scope> scope, const Request& request) {
  require_lora_updates(*scope);
  return unload_lora(*scope, body_of<UnloadLoraBody>(request));
}

// TGI's, llama.cpp's or vLLM's: the members tell.
Response handle_tokenize(std::shared_ptr<Scope> scope, const Request& request) {
  const OrderedJson body = parse_body(request);
  const auto has = [&](const char* name) { return body.is_object() && body.contains(name); };
  if (has("content")) return llama_cpp_tokenize(*scope, read_body<LlamaCppTokenizeBody>(body));
  if (has("prompt") || has("messages")) return vllm_tokenize(*scope, body);
  return tokenize(*scope, read_body<TokenizeBody>(body));
}

// text-embeddings-inference's, or vLLM's: the members tell.
Response handle_rerank(std::shared_ptr<Scope> scope, const Request& request) {
  const OrderedJson body = parse_body(request);
  if (body.is_object() && body.contains("documents")) {
    try {
      return rerank_documents(*scope, read_body<DocumentsBody>(body));
    } catch (const ApiError& error) {  // which whoever asks so takes as /v1/rerank tells it
      scope->failed(error);
      return openai_error(in_terms(error, scope->terms()));
    }
  }
  return rerank(*scope, read_body<RerankBody>(body));
}

Response handle_chat_tokenize(std::shared_ptr<Scope> scope, const Request& request) {
  return chat_tokenize(*scope, body_of<ChatBody>(request));
}

Response handle_responses(std::shared_ptr<Scope> scope, const Request& request) {
  return create_response(std::move(scope), body_of<ResponsesBody>(request));
}

Response handle_messages(std::shared_ptr<Scope> scope, const Request& request) {
  return create_message(std::move(scope), body_of<MessagesBody>(request));
}

template <typename Body, Response (*kHandle)(Scope&, const Body&)>
Response handle_texts(std::shared_ptr<Scope> scope, const Request& request) {
  return kHandle(*scope, body_of<Body>(request));
}

Response handle_openapi(std::shared_ptr<Scope> /*scope*/, const Request& /*request*/) {
  return json_response(200, openapi_document());
}

constexpr std::array kRoutes = {
    Route{"POST", "/", true, &kNativeErrors, handle_root,
          "Generate, streamed when `stream` is true; the older form of /generate. Of a model that "
          "gives vectors or scores: the body of /embed, /similarity, /predict or /rerank",
          "CompatGenerateRequest", "CompatGenerateResponse"},
    Route{"GET", "/", false, &kNativeErrors, page_or_health,
          "Whether the model answers; for who accepts text/html, the page", "", ""},
    Route{"POST", "/generate", true, &kNativeErrors, handle_generate, "Generate", "GenerateRequest",
          "GenerateResponse"},
    Route{"POST", "/generate_stream", true, &kNativeErrors, handle_generate_stream,
          "Generate, one server-sent event per token", "GenerateRequest", "StreamResponse"},
    Route{"POST", "/v1/chat/completions", true, &kOpenAiErrors, handle_chat,
          "Answer a conversation", "ChatRequest", "ChatCompletion"},
    Route{"POST", "/v1/completions", true, &kOpenAiErrors, handle_completions, "Continue prompts",
          "CompletionRequest", "CompletionFinal"},
    Route{"POST", "/v1/responses", true, &kResponsesErrors, handle_responses,
          "Answer a conversation, as items", "ResponsesRequest", "ResponseObject"},
    Route{"POST", "/v1/responses/input_tokens", true, &kResponsesErrors,
          handle_texts<ResponsesBody, count_response_tokens>, "How many tokens a conversation has",
          "ResponsesRequest", "ResponseTokens"},
    Route{"POST", "/v1/responses/compact", true, &kResponsesErrors, refuse_compact,
          "Refused: conversations are not made shorter", "", ""},
    Route{"GET", "/v1/responses/{id}", true, &kResponsesErrors, retrieve_response,
          "An answer that was kept", "", "ResponseObject"},
    Route{"DELETE", "/v1/responses/{id}", true, &kResponsesErrors, delete_response,
          "Forget an answer", "", "DeletedResponse"},
    Route{"POST", "/v1/responses/{id}/cancel", true, &kResponsesErrors, cancel_response,
          "End an answer that is made in the background", "", "ResponseObject"},
    Route{"GET", "/v1/responses/{id}/input_items", true, &kResponsesErrors, list_input_items,
          "The items that an answer was made from", "", "ResponseItems"},
    Route{"POST", "/responses", true, &kResponsesErrors, handle_responses,
          "The same as /v1/responses", "ResponsesRequest", "ResponseObject"},
    Route{"POST", "/responses/input_tokens", true, &kResponsesErrors,
          handle_texts<ResponsesBody, count_response_tokens>,
          "The same as /v1/responses/input_tokens", "ResponsesRequest", "ResponseTokens"},
    Route{"POST", "/responses/compact", true, &kResponsesErrors, refuse_compact,
          "The same as /v1/responses/compact", "", ""},
    Route{"GET", "/responses/{id}", true, &kResponsesErrors, retrieve_response,
          "The same as /v1/responses/{id}", "", "ResponseObject"},
    Route{"DELETE", "/responses/{id}", true, &kResponsesErrors, delete_response,
          "The same as /v1/responses/{id}", "", "DeletedResponse"},
    Route{"POST", "/responses/{id}/cancel", true, &kResponsesErrors, cancel_response,
          "The same as /v1/responses/{id}/cancel", "", "ResponseObject"},
    Route{"GET", "/responses/{id}/input_items", true, &kResponsesErrors, list_input_items,
          "The same as /v1/responses/{id}/input_items", "", "ResponseItems"},
    Route{"POST", "/v1/messages", true, &kAnthropicErrors, handle_messages,
          "Answer a conversation, as Anthropic's API", "MessagesRequest", "Message"},
    Route{"POST", "/v1/messages/count_tokens", true, &kAnthropicErrors,
          handle_texts<CountTokensBody, count_message_tokens>, "How many tokens a conversation has",
          "CountTokensRequest", "MessageTokens"},
    Route{"POST", "/chat/completions", true, &kOpenAiErrors, handle_chat,
          "The same as /v1/chat/completions", "ChatRequest", "ChatCompletion"},
    Route{"POST", "/invocations", true, &kNativeErrors, handle_invocations,
          "The body of any of the routes that generate", "SagemakerRequest", "SagemakerResponse"},
    Route{"POST", "/tokenize", true, &kNativeErrors, handle_tokenize, "The tokens of a prompt",
          "TokenizeRequest", "TokenizeResponse"},
    Route{"POST", "/chat_tokenize", false, &kNativeErrors, handle_chat_tokenize,
          "A conversation as the model sees it, and its tokens", "ChatRequest",
          "ChatTokenizeResponse"},
    Route{"POST", "/embed", true, &kNativeErrors, handle_texts<EmbedBody, embed>,
          "The vector of a text, or of each of a list", "EmbedRequest", "EmbedResponse"},
    Route{"POST", "/embed_all", true, &kNativeErrors, handle_texts<EmbedAllBody, embed_all>,
          "The vectors of the tokens of a text, or of each of a list", "EmbedAllRequest",
          "EmbedAllResponse"},
    Route{"POST", "/v1/embeddings", true, &kOpenAiErrors, handle_texts<EmbeddingsBody, embeddings>,
          "The vectors of texts", "EmbeddingsRequest", "EmbeddingsResponse"},
    Route{"POST", "/embeddings", true, &kOpenAiErrors, handle_texts<EmbeddingsBody, embeddings>,
          "The same as /v1/embeddings", "EmbeddingsRequest", "EmbeddingsResponse"},
    Route{"POST", "/classify", true, &kNativeErrors, handle_texts<ClassifyBody, classify>,
          "The entities of a text, or its labels with their scores", "ClassifyRequest",
          "ClassifyResponse"},
    Route{"POST", "/classify_batch", true, &kNativeErrors,
          handle_texts<ClassifyBody, classify_batch>, "The same of each of a list",
          "ClassifyRequest", "ClassifyBatchResponse"},
    Route{"POST", "/predict", true, &kNativeErrors, handle_texts<ClassifyBody, predict>,
          "Labels with their scores of a text, a pair, or each of a list", "ClassifyRequest",
          "ClassifyResponse"},
    Route{"POST", "/rerank", true, &kNativeErrors, handle_rerank,
          "Texts by how well they fit a question; with `documents` the same as /v1/rerank",
          "RerankRequest", "RerankResponse"},
    Route{"POST", "/v1/rerank", true, &kOpenAiErrors, handle_texts<DocumentsBody, rerank_documents>,
          "Documents by how well they fit a question", "DocumentsRequest", "DocumentsResponse"},
    Route{"POST", "/v1/reranking", true, &kOpenAiErrors,
          handle_texts<DocumentsBody, rerank_documents>, "The same as /v1/rerank",
          "DocumentsRequest", "DocumentsResponse"},
    Route{"POST", "/v2/rerank", true, &kOpenAiErrors, handle_texts<DocumentsBody, rerank_documents>,
          "The same as /v1/rerank", "DocumentsRequest", "DocumentsResponse"},
    Route{"POST", "/similarity", true, &kNativeErrors, handle_texts<SimilarityBody, similarity>,
          "How near the vectors of texts are to that of another", "SimilarityRequest",
          "SimilarityResponse"},
    Route{"POST", "/score", true, &kOpenAiErrors, handle_texts<ScoreBody, score>,
          "How well the two texts of each pair fit", "ScoreRequest", "ScoreResponse"},
    Route{"POST", "/v1/score", true, &kOpenAiErrors, handle_texts<ScoreBody, score>,
          "The same as /score", "ScoreRequest", "ScoreResponse"},
    Route{"GET", "/startup", false, &kNativeErrors, startup, "Whether the model really answers", "",
          ""},
    Route{"GET", "/info", false, &kNativeErrors, info, "The model and the limits", "", "Info"},
    Route{"GET", "/health", false, &kNativeErrors, health, "Whether the model answers", "", ""},
    Route{"GET", "/v1/health", false, &kNativeErrors, health, "The same as /health", "", ""},
    Route{"GET", "/ping", false, &kNativeErrors, health, "Whether the model answers", "", ""},
    Route{"GET", "/metrics", false, &kNativeErrors, metrics_page,
          "Metrics in Prometheus' text format", "", ""},
    Route{"GET", "/v1/models", false, &kOpenAiErrors, models, "The model served", "", "ModelsInfo"},
    Route{"GET", "/models", false, &kOpenAiErrors, models, "The same as /v1/models", "",
          "ModelsInfo"},
    Route{"GET", "/v1/models/*", false, &kOpenAiErrors, one_model, "One model", "", "ModelInfo"},
    Route{"POST", "/v1/load_lora_adapter", true, &kOpenAiErrors, handle_load_lora,
          "As vLLM: load a LoRA adapter, where the server allows it", "LoadLoraAdapterRequest", ""},
    Route{"POST", "/v1/unload_lora_adapter", true, &kOpenAiErrors, handle_unload_lora,
          "As vLLM: unload a LoRA adapter, where the server allows it", "UnloadLoraAdapterRequest",
          ""},
    Route{"GET", "/ui", false, &kNativeErrors, ui_page, "The page: chat, and what the server does",
          "", ""},
    Route{"GET", "/ui/", false, &kNativeErrors, ui_moved, "Moved to /ui", "", ""},
    Route{"GET", "/ui/files/*", false, &kNativeErrors, ui_file, "Scripts and styles of the pages",
          "", ""},
    Route{"GET", "/ui/requests", true, &kNativeErrors, recent_requests,
          "The last requests of the request log, without prompts and answers", "",
          "RecentRequests"},
    Route{"GET", "/docs", false, &kNativeErrors, docs_page, "A page to try these routes", "", ""},
    Route{"GET", "/api-doc/openapi.json", false, &kNativeErrors, handle_openapi, "This document",
          "", ""},
};

constexpr std::array kApis = {
    Api{ollama_routes, add_ollama_schemas},
    Api{llama_cpp_routes, add_llama_cpp_schemas},
    Api{kserve_routes, add_kserve_schemas},
    Api{vertex_routes, add_vertex_schemas},
};

}  // namespace

std::span<const Api> apis() {
  return kApis;
}

std::span<const Route> route_table() {
  static const std::vector<Route> kAll = [] {
    std::vector<Route> all(kRoutes.begin(), kRoutes.end());
    for (const Api& api : kApis) {
      const std::span<const Route> routes = api.routes();
      all.insert(all.end(), routes.begin(), routes.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace tgi::http
