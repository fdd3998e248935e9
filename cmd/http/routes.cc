#include "cmd/http/routes.h"

#include <array>
#include <string>

#include "base/error.h"
#include "cmd/http/info_api.h"
#include "cmd/http/lora_api.h"
#include "cmd/http/native_api.h"
#include "cmd/http/openai_api.h"
#include "cmd/http/ui_page.h"
#include "cmd/http/vectors_api.h"

namespace tgi::http {
namespace {

using ipc::OrderedJson;

OrderedJson parse_body(const Request& request) {
  try {
    return ipc::parse_json(request.body);
  } catch (const Error& error) {
    throw BodyError(400, std::string("Failed to parse the request body as JSON: ") + error.what());
  }
}

template <typename T>
T body_of(const Request& request) {
  return read_body<T>(parse_body(request));
}

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
  return compatible(std::move(scope), body_of<GenerateBody>(request));
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

Response handle_tokenize(std::shared_ptr<Scope> scope, const Request& request) {
  return tokenize(*scope, body_of<GenerateBody>(request));
}

Response handle_chat_tokenize(std::shared_ptr<Scope> scope, const Request& request) {
  return chat_tokenize(*scope, body_of<ChatBody>(request));
}

template <typename Body, Response (*kHandle)(Scope&, const Body&)>
Response handle_texts(std::shared_ptr<Scope> scope, const Request& request) {
  return kHandle(*scope, body_of<Body>(request));
}

Response handle_openapi(std::shared_ptr<Scope> /*scope*/, const Request& /*request*/) {
  return json_response(200, openapi_document());
}

constexpr std::array kRoutes = {
    Route{"POST", "/", true, false, handle_root,
          "Generate, streamed when `stream` is true; the older form of /generate",
          "CompatGenerateRequest", "CompatGenerateResponse"},
    Route{"GET", "/", false, false, page_or_health,
          "Whether the model answers; for who accepts text/html, the page", "", ""},
    Route{"POST", "/generate", true, false, handle_generate, "Generate", "GenerateRequest",
          "GenerateResponse"},
    Route{"POST", "/generate_stream", true, false, handle_generate_stream,
          "Generate, one server-sent event per token", "GenerateRequest", "StreamResponse"},
    Route{"POST", "/v1/chat/completions", true, true, handle_chat, "Answer a conversation",
          "ChatRequest", "ChatCompletion"},
    Route{"POST", "/v1/completions", true, true, handle_completions, "Continue prompts",
          "CompletionRequest", "CompletionFinal"},
    Route{"POST", "/invocations", true, false, handle_invocations,
          "The body of any of the routes that generate", "SagemakerRequest", "SagemakerResponse"},
    Route{"POST", "/tokenize", true, false, handle_tokenize, "The tokens of a prompt",
          "GenerateRequest", "TokenizeResponse"},
    Route{"POST", "/chat_tokenize", false, false, handle_chat_tokenize,
          "A conversation as the model sees it, and its tokens", "ChatRequest",
          "ChatTokenizeResponse"},
    Route{"POST", "/embed", true, false, handle_texts<EmbedBody, embed>,
          "The vector of a text, or of each of a list", "EmbedRequest", "EmbedResponse"},
    Route{"POST", "/v1/embeddings", true, true, handle_texts<EmbeddingsBody, embeddings>,
          "The vectors of texts", "EmbeddingsRequest", "EmbeddingsResponse"},
    Route{"POST", "/classify", true, false, handle_texts<ClassifyBody, classify>,
          "The entities of a text, or its labels with their scores", "ClassifyRequest",
          "ClassifyResponse"},
    Route{"POST", "/classify_batch", true, false, handle_texts<ClassifyBody, classify_batch>,
          "The same of each of a list", "ClassifyRequest", "ClassifyBatchResponse"},
    Route{"POST", "/predict", true, false, handle_texts<ClassifyBody, predict>,
          "Labels with their scores of a text, a pair, or each of a list", "ClassifyRequest",
          "ClassifyResponse"},
    Route{"POST", "/rerank", true, false, handle_texts<RerankBody, rerank>,
          "Texts by how well they fit a question", "RerankRequest", "RerankResponse"},
    Route{"POST", "/v1/rerank", true, true, handle_texts<DocumentsBody, rerank_documents>,
          "Documents by how well they fit a question", "DocumentsRequest", "DocumentsResponse"},
    Route{"GET", "/startup", false, false, startup, "Whether the model really answers", "", ""},
    Route{"GET", "/info", false, false, info, "The model and the limits", "", "Info"},
    Route{"GET", "/health", false, false, health, "Whether the model answers", "", ""},
    Route{"GET", "/ping", false, false, health, "Whether the model answers", "", ""},
    Route{"GET", "/metrics", false, false, metrics_page, "Metrics in Prometheus' text format", "",
          ""},
    Route{"GET", "/v1/models", false, true, models, "The model served", "", "ModelsInfo"},
    Route{"GET", "/v1/models/*", false, true, one_model, "One model", "", "ModelInfo"},
    Route{"POST", "/v1/load_lora_adapter", true, true, handle_load_lora,
          "As vLLM: load a LoRA adapter, where the server allows it", "LoadLoraAdapterRequest", ""},
    Route{"POST", "/v1/unload_lora_adapter", true, true, handle_unload_lora,
          "As vLLM: unload a LoRA adapter, where the server allows it", "UnloadLoraAdapterRequest",
          ""},
    Route{"GET", "/ui", false, false, ui_page, "The page: chat, and what the server does", "", ""},
    Route{"GET", "/ui/", false, false, ui_moved, "Moved to /ui", "", ""},
    Route{"GET", "/ui/files/*", false, false, ui_file, "Scripts and styles of the pages", "", ""},
    Route{"GET", "/ui/requests", true, false, recent_requests,
          "The last requests of the request log, without prompts and answers", "",
          "RecentRequests"},
    Route{"GET", "/docs", false, false, docs_page, "A page to try these routes", "", ""},
    Route{"GET", "/api-doc/openapi.json", false, false, handle_openapi, "This document", "", ""},
};

}  // namespace

std::span<const Route> route_table() {
  return kRoutes;
}

}  // namespace tgi::http
