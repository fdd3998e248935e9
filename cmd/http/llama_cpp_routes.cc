#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "cmd/http/llama_cpp_api.h"
#include "cmd/http/request_body.h"
#include "cmd/http/sse.h"

namespace tgi::http {
namespace {

Response handle_completion(std::shared_ptr<Scope> scope, const Request& request) {
  return llama_cpp_completion(std::move(scope), body_of<LlamaCppBody>(request));
}

Response refuse_infill(std::shared_ptr<Scope>, const Request&) {
  throw ApiError(501, "unsupported",
                 "no model is asked to fill in the middle: its marks differ from model to model, "
                 "write them into the `prompt` of /completion");
}

Response refuse_props(std::shared_ptr<Scope>, const Request&) {
  throw ApiError(501, "unsupported",
                 "nothing can be changed while this server runs; `tgi load` has the settings");
}

Response vllm_version(std::shared_ptr<Scope>, const Request&) {
  return json_response(200, {{"version", ipc::kVersion}});
}

constexpr std::array kLlamaCppRoutes = {
    Route{"POST", "/completion", true, &kLlamaCppErrors, handle_completion,
          "As llama.cpp's server: continue a prompt", "LlamaCppRequest", "LlamaCppResponse", true,
          kServerSentEvents.content_type},
    Route{"POST", "/completions", true, &kLlamaCppErrors, handle_completion, "The same",
          "LlamaCppRequest", "LlamaCppResponse", true, kServerSentEvents.content_type},
    Route{"POST", "/infill", true, &kLlamaCppErrors, refuse_infill,
          "Refused: no model is asked to fill in the middle", "", ""},
    Route{"POST", "/detokenize", true, &kLlamaCppErrors, detokenize,
          "As llama.cpp's server and vLLM: the text of tokens", "DetokenizeRequest",
          "DetokenizeResponse", true},
    Route{"POST", "/apply-template", true, &kLlamaCppErrors, apply_template,
          "As llama.cpp's server: a conversation as the model sees it", "ChatRequest",
          "ApplyTemplateResponse", true},
    Route{"GET", "/props", false, &kLlamaCppErrors, llama_cpp_props,
          "As llama.cpp's server: the model and the defaults", "", "LlamaCppProps"},
    Route{"POST", "/props", true, &kLlamaCppErrors, refuse_props, "Refused: nothing can be changed",
          "", ""},
    Route{"GET", "/slots", false, &kLlamaCppErrors, llama_cpp_slots,
          "As llama.cpp's server: how many requests run", "", "LlamaCppSlots"},
    Route{"GET", "/version", false, &kLlamaCppErrors, vllm_version, "As vLLM: tgi's version", "",
          "Version"},
};

constexpr std::string_view kLlamaCppSchemas = R"json({
"LlamaCppError": {"type": "object", "required": ["error"], "properties": {
  "error": {"type": "object", "required": ["code", "message", "type"], "properties": {
    "code": {"type": "integer"}, "message": {"type": "string"}, "type": {"type": "string"}}}}},
"LlamaCppCompletion": {"type": "object", "properties": {
  "index": {"type": "integer"}, "content": {"type": "string"}, "tokens": {"type": "array", "items": {"type": "integer"}},
  "id_slot": {"type": "integer"}, "stop": {"type": "boolean"}, "model": {"type": "string"},
  "tokens_predicted": {"type": "integer"}, "tokens_evaluated": {"type": "integer"}, "tokens_cached": {"type": "integer"},
  "generation_settings": {"type": "object"}, "prompt": {"type": "string"}, "has_new_line": {"type": "boolean"},
  "truncated": {"type": "boolean"}, "stop_type": {"type": "string", "enum": ["eos", "limit", "word"]},
  "stopping_word": {"type": "string"}, "timings": {"type": "object"},
  "completion_probabilities": {"type": "array", "items": {"type": "object"}}}},
"LlamaCppResponse": {"oneOf": [{"$ref": "#/components/schemas/LlamaCppCompletion"},
  {"type": "array", "items": {"$ref": "#/components/schemas/LlamaCppCompletion"}}]},
"DetokenizeResponse": {"type": "object", "required": ["content", "prompt"], "properties": {
  "content": {"type": "string"}, "prompt": {"type": "string"}}},
"ApplyTemplateResponse": {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}},
"LlamaCppProps": {"type": "object", "required": ["default_generation_settings", "total_slots"], "properties": {
  "default_generation_settings": {"type": "object"}, "total_slots": {"type": "integer"},
  "model_alias": {"type": "string"}, "model_path": {"type": "string"}, "modalities": {"type": "object"},
  "build_info": {"type": "string"}}},
"LlamaCppSlots": {"type": "array", "items": {"type": "object", "required": ["id", "is_processing"], "properties": {
  "id": {"type": "integer"}, "n_ctx": {"type": "integer"}, "speculative": {"type": "boolean"}, "is_processing": {"type": "boolean"}}}},
"Version": {"type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}}
})json";

}  // namespace

std::span<const Route> llama_cpp_routes() {
  return kLlamaCppRoutes;
}

void add_llama_cpp_schemas(OrderedJson& schemas) {
  schemas.update(OrderedJson::parse(kLlamaCppSchemas));
  schemas["LlamaCppRequest"] = body_schema<LlamaCppBody>();
  schemas["DetokenizeRequest"] = body_schema<DetokenizeBody>();
  schemas["LlamaCppTokenizeRequest"] = body_schema<LlamaCppTokenizeBody>();
  schemas["VllmTokenizeRequest"] = body_schema<VllmTokenizeBody>();
}

}  // namespace tgi::http
