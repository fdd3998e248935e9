#include <array>
#include <memory>
#include <span>
#include <string>

#include "cmd/http/ollama_api.h"
#include "cmd/http/request_body.h"

namespace tgi::http {
namespace {

template <typename Body, Response (*kHandle)(std::shared_ptr<Scope>, const Body&)>
Response with_body(std::shared_ptr<Scope> scope, const Request& request) {
  return kHandle(std::move(scope), body_of<Body>(request));
}

[[noreturn]] void refuse_store(const char* what, const char* instead) {
  throw ApiError(501, "unsupported", fmt::format("this server {}; {}", what, instead));
}

Response refuse_copy(std::shared_ptr<Scope>, const Request&) {
  refuse_store("gives models no other names", "`tgi serve MODEL` serves one by its name");
}
Response refuse_push(std::shared_ptr<Scope>, const Request&) {
  refuse_store("sends models nowhere", "`tgi ls` tells where their files are");
}
Response refuse_blob(std::shared_ptr<Scope>, const Request&) {
  refuse_store("takes no files of models",
               "`tgi load MODEL` loads a folder or a file of this machine");
}

constexpr std::array kOllamaRoutes = {
    Route{"POST", "/api/chat", true, &kOllamaErrors, with_body<OllamaChatBody, ollama_chat>,
          "As ollama: answer a conversation, streamed unless `stream` is false",
          "OllamaChatRequest", "OllamaChatResponse", true, kJsonLines.content_type},
    Route{"POST", "/api/generate", true, &kOllamaErrors,
          with_body<OllamaGenerateBody, ollama_generate>,
          "As ollama: answer a prompt, streamed unless `stream` is false", "OllamaGenerateRequest",
          "OllamaGenerateResponse", true, kJsonLines.content_type},
    Route{"POST", "/api/embed", true, &kOllamaErrors, with_body<OllamaEmbedBody, ollama_embed>,
          "As ollama: the vectors of texts", "OllamaEmbedRequest", "OllamaEmbedResponse", true},
    Route{"POST", "/api/embeddings", true, &kOllamaErrors,
          with_body<OllamaEmbeddingsBody, ollama_embeddings>,
          "As ollama's older clients: the vector of a text", "OllamaEmbeddingsRequest",
          "OllamaEmbeddingsResponse", true},
    Route{"GET", "/api/tags", false, &kOllamaErrors, ollama_tags,
          "As ollama: the model served, and its adapters", "", "OllamaModels"},
    Route{"POST", "/api/show", false, &kOllamaErrors, with_body<OllamaModelBody, ollama_show>,
          "As ollama: what the model is", "OllamaModelRequest", "OllamaModel", true},
    Route{"GET", "/api/ps", false, &kOllamaErrors, ollama_ps, "As ollama: the model in memory", "",
          "OllamaModels"},
    Route{"GET", "/api/version", false, &kOllamaErrors, ollama_version,
          "The version of ollama whose API this is, and tgi's", "", "OllamaVersion"},
    Route{"POST", "/api/pull", true, &kOllamaErrors, with_body<OllamaModelBody, ollama_pull>,
          "As ollama: download a model, where --allow-pull is given; one that is served is here",
          "OllamaModelRequest", "OllamaStatus", true, kJsonLines.content_type, true},
    Route{"DELETE", "/api/delete", true, &kOllamaErrors, with_body<OllamaModelBody, ollama_delete>,
          "As ollama: remove a preset; other models are not removed", "OllamaModelRequest", "",
          true, "", true},
    Route{"POST", "/api/create", true, &kOllamaErrors, with_body<OllamaCreateBody, ollama_create>,
          "As ollama: keep a preset of a model that is served, and serve it", "OllamaCreateRequest",
          "OllamaStatus", true, kJsonLines.content_type, true},
    Route{"POST", "/api/copy", true, &kOllamaErrors, refuse_copy, "Refused: models have one name",
          "", ""},
    Route{"POST", "/api/push", true, &kOllamaErrors, refuse_push,
          "Refused: models are sent nowhere", "", ""},
    Route{"POST", "/api/blobs/*", true, &kOllamaErrors, refuse_blob,
          "Refused: files of models are not taken", "", ""},
};

constexpr std::string_view kOllamaSchemas = R"json({
"OllamaError": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
"OllamaLogprob": {"type": "object", "required": ["token", "logprob"], "properties": {
  "token": {"type": "string"}, "logprob": {"type": "number", "nullable": true},
  "bytes": {"type": "array", "items": {"type": "integer"}}, "top_logprobs": {"type": "array", "items": {"type": "object"}}}},
"OllamaEnd": {"type": "object", "required": ["model", "created_at", "done"], "properties": {
  "model": {"type": "string"}, "created_at": {"type": "string"}, "done": {"type": "boolean"},
  "done_reason": {"type": "string", "enum": ["stop", "length", "load"]},
  "total_duration": {"type": "integer", "description": "nanoseconds"}, "load_duration": {"type": "integer"},
  "prompt_eval_count": {"type": "integer"}, "prompt_eval_duration": {"type": "integer"},
  "eval_count": {"type": "integer"}, "eval_duration": {"type": "integer"},
  "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/OllamaLogprob"}}}},
"OllamaChatResponse": {"allOf": [{"$ref": "#/components/schemas/OllamaEnd"}, {"type": "object", "required": ["message"], "properties": {
  "message": {"type": "object", "required": ["role", "content"], "properties": {
    "role": {"type": "string"}, "content": {"type": "string"}, "thinking": {"type": "string"},
    "tool_calls": {"type": "array", "items": {"type": "object"}}}}}}]},
"OllamaGenerateResponse": {"allOf": [{"$ref": "#/components/schemas/OllamaEnd"}, {"type": "object", "required": ["response"], "properties": {
  "response": {"type": "string"}, "thinking": {"type": "string"}}}]},
"OllamaEmbedResponse": {"type": "object", "required": ["model", "embeddings"], "properties": {
  "model": {"type": "string"}, "embeddings": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
  "total_duration": {"type": "integer"}, "load_duration": {"type": "integer"}, "prompt_eval_count": {"type": "integer"}}},
"OllamaEmbeddingsResponse": {"type": "object", "required": ["embedding"], "properties": {
  "embedding": {"type": "array", "items": {"type": "number"}}}},
"OllamaDetails": {"type": "object", "properties": {
  "parent_model": {"type": "string"}, "format": {"type": "string"}, "family": {"type": "string"},
  "families": {"type": "array", "items": {"type": "string"}}, "parameter_size": {"type": "string"},
  "quantization_level": {"type": "string"}}},
"OllamaModels": {"type": "object", "required": ["models"], "properties": {
  "models": {"type": "array", "items": {"type": "object", "required": ["name", "model"], "properties": {
    "name": {"type": "string"}, "model": {"type": "string"}, "size": {"type": "integer"}, "digest": {"type": "string"},
    "details": {"$ref": "#/components/schemas/OllamaDetails"}, "modified_at": {"type": "string"},
    "expires_at": {"type": "string"}, "size_vram": {"type": "integer"}, "context_length": {"type": "integer"}}}}}},
"OllamaModel": {"type": "object", "required": ["details", "model_info", "capabilities"], "properties": {
  "modelfile": {"type": "string"}, "parameters": {"type": "string"}, "template": {"type": "string"},
  "license": {"type": "string"}, "system": {"type": "string"}, "messages": {"type": "array", "items": {"type": "object"}}, "modified_at": {"type": "string"},
  "details": {"$ref": "#/components/schemas/OllamaDetails"}, "model_info": {"type": "object"},
  "capabilities": {"type": "array", "items": {"type": "string"}}}},
"OllamaVersion": {"type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}},
"OllamaStatus": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
})json";

}  // namespace

std::span<const Route> ollama_routes() {
  return kOllamaRoutes;
}

void add_ollama_schemas(OrderedJson& schemas) {
  schemas.update(OrderedJson::parse(kOllamaSchemas));
  schemas["OllamaOptions"] = body_schema<OllamaOptions>();
  schemas["OllamaChatRequest"] = body_schema<OllamaChatBody>();
  schemas["OllamaGenerateRequest"] = body_schema<OllamaGenerateBody>();
  schemas["OllamaEmbedRequest"] = body_schema<OllamaEmbedBody>();
  schemas["OllamaEmbeddingsRequest"] = body_schema<OllamaEmbeddingsBody>();
  schemas["OllamaCreateRequest"] = body_schema<OllamaCreateBody>();
  schemas["OllamaModelRequest"] = body_schema<OllamaModelBody>();
}

}  // namespace tgi::http
