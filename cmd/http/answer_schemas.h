// What the answers hold, as OpenAPI schemas: the names and fields are those of TGI's document.
#pragma once

#include <string_view>

namespace tgi::http {

inline constexpr std::string_view kAnswerSchemas = R"json({
"FinishReason": {"type": "string", "enum": ["length", "eos_token", "stop_sequence"]},
"PrefillToken": {"type": "object", "required": ["id", "text", "logprob"], "properties": {
  "id": {"type": "integer", "minimum": 0}, "text": {"type": "string"},
  "logprob": {"type": "number", "nullable": true}}},
"Token": {"type": "object", "required": ["id", "text", "logprob", "special"], "properties": {
  "id": {"type": "integer", "minimum": 0}, "text": {"type": "string"},
  "logprob": {"type": "number", "nullable": true}, "special": {"type": "boolean"}, "skipped": {"type": "boolean"},
  "alternative_tokens": {"type": "array", "items": {"$ref": "#/components/schemas/AlternativeToken"}}}},
"AlternativeToken": {"type": "object", "required": ["id", "text", "logprob"], "properties": {
  "id": {"type": "integer"}, "text": {"type": "string"}, "logprob": {"type": "number", "nullable": true}}},
"BestOfSequence": {"type": "object",
  "required": ["generated_text", "finish_reason", "generated_tokens", "prefill", "tokens"], "properties": {
  "generated_text": {"type": "string"}, "finish_reason": {"$ref": "#/components/schemas/FinishReason"},
  "generated_tokens": {"type": "integer"}, "skipped_tokens": {"type": "integer"}, "seed": {"type": "integer", "nullable": true},
  "prefill": {"type": "array", "items": {"$ref": "#/components/schemas/PrefillToken"}},
  "tokens": {"type": "array", "items": {"$ref": "#/components/schemas/Token"}},
  "top_tokens": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/components/schemas/Token"}}}}},
"Details": {"type": "object", "required": ["finish_reason", "generated_tokens", "prefill", "tokens"], "properties": {
  "finish_reason": {"$ref": "#/components/schemas/FinishReason"},
  "prompt_tokens": {"type": "integer"}, "generated_tokens": {"type": "integer"}, "skipped_tokens": {"type": "integer"}, "seed": {"type": "integer", "nullable": true},
  "prefill": {"type": "array", "items": {"$ref": "#/components/schemas/PrefillToken"}},
  "tokens": {"type": "array", "items": {"$ref": "#/components/schemas/Token"}},
  "top_tokens": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/components/schemas/Token"}}},
  "best_of_sequences": {"type": "array", "nullable": true, "items": {"$ref": "#/components/schemas/BestOfSequence"}}}},
"GenerateResponse": {"type": "object", "required": ["generated_text"], "properties": {
  "generated_text": {"type": "string"},
  "details": {"allOf": [{"$ref": "#/components/schemas/Details"}], "nullable": true}}},
"StreamDetails": {"type": "object", "required": ["finish_reason", "generated_tokens", "input_length"], "properties": {
  "finish_reason": {"$ref": "#/components/schemas/FinishReason"}, "prompt_tokens": {"type": "integer"}, "generated_tokens": {"type": "integer"},
  "input_length": {"type": "integer"}, "skipped_tokens": {"type": "integer"}, "seed": {"type": "integer", "nullable": true}}},
"StreamResponse": {"type": "object", "required": ["index", "token"], "properties": {
  "index": {"type": "integer"}, "token": {"$ref": "#/components/schemas/Token"},
  "top_tokens": {"type": "array", "items": {"$ref": "#/components/schemas/Token"}},
  "generated_text": {"type": "string", "nullable": true},
  "details": {"allOf": [{"$ref": "#/components/schemas/StreamDetails"}], "nullable": true}}},
"ErrorResponse": {"type": "object", "required": ["error", "error_type"], "properties": {
  "error": {"type": "string"}, "error_type": {"type": "string"}}},
"OpenAiError": {"type": "object", "required": ["error"], "properties": {
  "error": {"type": "object", "required": ["message", "type", "code"], "properties": {
    "message": {"type": "string"}, "type": {"type": "string"},
    "param": {"type": "string", "nullable": true}, "code": {"type": "string", "nullable": true}}},
  "error_type": {"type": "string"}}},
"EmbedResponse": {"oneOf": [
  {"type": "object", "required": ["embeddings"], "properties": {
    "embeddings": {"type": "array", "items": {"type": "number"}}}},
  {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}]},
"EmbedAllResponse": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}},
"EmbeddingsResponse": {"type": "object", "required": ["object", "data", "model", "usage"], "properties": {
  "object": {"type": "string", "enum": ["list"]}, "model": {"type": "string"},
  "data": {"type": "array", "items": {"type": "object", "required": ["object", "index", "embedding"], "properties": {
    "object": {"type": "string", "enum": ["embedding"]}, "index": {"type": "integer"},
    "embedding": {"oneOf": [{"type": "array", "items": {"type": "number"}}, {"type": "string"}]}}}},
  "usage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}}}},
"TextScore": {"oneOf": [
  {"type": "object", "required": ["label", "score"], "properties": {
    "label": {"type": "string"}, "score": {"type": "number"}}},
  {"type": "object", "required": ["entity_group", "score", "word", "start", "end"], "properties": {
    "entity_group": {"type": "string"}, "score": {"type": "number"}, "word": {"type": "string"},
    "start": {"type": "integer"}, "end": {"type": "integer"}}}]},
"ClassifyResponse": {"type": "array", "items": {"$ref": "#/components/schemas/TextScore"}},
"ClassifyBatchResponse": {"type": "array", "items": {"$ref": "#/components/schemas/ClassifyResponse"}},
"RerankResponse": {"type": "array", "items": {"type": "object", "required": ["index", "score"], "properties": {
  "index": {"type": "integer"}, "score": {"type": "number"}, "text": {"type": "string"}}}},
"DocumentsResponse": {"type": "object", "required": ["model", "results"], "properties": {
  "model": {"type": "string"}, "usage": {"type": "object", "properties": {"total_tokens": {"type": "integer"}}},
  "results": {"type": "array", "items": {"type": "object", "required": ["index", "relevance_score"], "properties": {
    "index": {"type": "integer"}, "relevance_score": {"type": "number"},
    "document": {"type": "object", "properties": {"text": {"type": "string"}}}}}}}},
"SimilarityResponse": {"type": "array", "items": {"type": "number"}},
"ScoreResponse": {"type": "object", "required": ["object", "model", "data", "usage"], "properties": {
  "object": {"type": "string", "enum": ["list"]}, "model": {"type": "string"},
  "data": {"type": "array", "items": {"type": "object", "required": ["index", "object", "score"], "properties": {
    "index": {"type": "integer"}, "object": {"type": "string", "enum": ["score"]}, "score": {"type": "number"}}}},
  "usage": {"type": "object", "properties": {"prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}}}},
"Usage": {"type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"], "properties": {
  "prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"},
  "prompt_tokens_details": {"type": "object", "properties": {"cached_tokens": {"type": "integer"}}},
  "completion_tokens_details": {"type": "object", "properties": {"reasoning_tokens": {"type": "integer"}}}}},
"ChatCompletion": {"type": "object",
  "required": ["id", "object", "created", "model", "system_fingerprint", "choices", "usage"], "properties": {
  "id": {"type": "string"}, "object": {"type": "string", "enum": ["chat.completion"]}, "created": {"type": "integer"},
  "model": {"type": "string"}, "system_fingerprint": {"type": "string"},
  "choices": {"type": "array", "items": {"type": "object", "required": ["index", "message", "finish_reason"], "properties": {
    "index": {"type": "integer"}, "finish_reason": {"type": "string", "enum": ["stop", "length", "tool_calls"]},
    "message": {"type": "object", "required": ["role", "content"], "properties": {
      "role": {"type": "string"}, "content": {"type": "string", "nullable": true},
      "reasoning_content": {"type": "string"},
      "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}}}},
    "logprobs": {"type": "object", "nullable": true}}}},
  "usage": {"$ref": "#/components/schemas/Usage"}}},
"ChatCompletionChunk": {"type": "object",
  "required": ["id", "object", "created", "model", "system_fingerprint", "choices"], "properties": {
  "id": {"type": "string"}, "object": {"type": "string", "enum": ["chat.completion.chunk"]}, "created": {"type": "integer"},
  "model": {"type": "string"}, "system_fingerprint": {"type": "string"},
  "choices": {"type": "array", "items": {"type": "object", "required": ["index", "delta"], "properties": {
    "index": {"type": "integer"}, "finish_reason": {"type": "string", "nullable": true},
    "delta": {"type": "object", "required": ["role"], "properties": {
      "role": {"type": "string"}, "content": {"type": "string"}, "reasoning_content": {"type": "string"},
      "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/DeltaToolCall"}}}},
    "logprobs": {"type": "object", "nullable": true}}}},
  "usage": {"allOf": [{"$ref": "#/components/schemas/Usage"}], "nullable": true}}},
"ToolCall": {"type": "object", "required": ["id", "type", "function"], "properties": {
  "id": {"type": "string"}, "type": {"type": "string", "enum": ["function"]},
  "function": {"type": "object", "required": ["name", "arguments"], "properties": {
    "name": {"type": "string"}, "arguments": {"type": "string", "description": "a JSON object"}}}}},
"DeltaToolCall": {"type": "object", "required": ["index", "function"], "properties": {
  "index": {"type": "integer"}, "id": {"type": "string"}, "type": {"type": "string", "enum": ["function"]},
  "function": {"type": "object", "required": ["arguments"], "properties": {
    "name": {"type": "string"}, "arguments": {"type": "string"}}}}},
"CompletionFinal": {"type": "object",
  "required": ["id", "object", "created", "model", "system_fingerprint", "choices", "usage"], "properties": {
  "id": {"type": "string"}, "object": {"type": "string", "enum": ["text_completion"]}, "created": {"type": "integer"},
  "model": {"type": "string"}, "system_fingerprint": {"type": "string"},
  "choices": {"type": "array", "items": {"$ref": "#/components/schemas/CompletionComplete"}},
  "usage": {"$ref": "#/components/schemas/Usage"}}},
"CompletionComplete": {"type": "object", "required": ["index", "text", "finish_reason"], "properties": {
  "index": {"type": "integer"}, "text": {"type": "string"}, "finish_reason": {"type": "string"},
  "logprobs": {"type": "object", "nullable": true}}},
"CompletionPart": {"type": "object", "required": ["index", "text", "finish_reason"], "properties": {
  "index": {"type": "integer"}, "text": {"type": "string"}, "finish_reason": {"type": "string", "nullable": true},
  "logprobs": {"type": "object", "nullable": true}}},
"Chunk": {"type": "object", "required": ["id", "object", "created", "model", "system_fingerprint", "choices"], "properties": {
  "id": {"type": "string"}, "object": {"type": "string", "enum": ["text_completion"]}, "created": {"type": "integer"},
  "model": {"type": "string"}, "system_fingerprint": {"type": "string"},
  "choices": {"type": "array", "items": {"$ref": "#/components/schemas/CompletionPart"}},
  "usage": {"allOf": [{"$ref": "#/components/schemas/Usage"}], "nullable": true}}},
"Info": {"type": "object", "required": ["model_id", "max_concurrent_requests", "max_best_of", "max_stop_sequences",
  "max_input_tokens", "max_total_tokens", "validation_workers", "max_client_batch_size", "router", "version"], "properties": {
  "model_id": {"type": "string"}, "model_sha": {"type": "string", "nullable": true},
  "model_pipeline_tag": {"type": "string", "nullable": true}, "max_concurrent_requests": {"type": "integer"},
  "max_best_of": {"type": "integer"}, "max_stop_sequences": {"type": "integer"}, "max_input_tokens": {"type": "integer"},
  "max_total_tokens": {"type": "integer"}, "validation_workers": {"type": "integer"},
  "max_client_batch_size": {"type": "integer"}, "router": {"type": "string"}, "version": {"type": "string"},
  "sha": {"type": "string", "nullable": true}, "docker_label": {"type": "string", "nullable": true}}},
"ModelInfo": {"type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
  "id": {"type": "string"}, "object": {"type": "string"}, "created": {"type": "integer"}, "owned_by": {"type": "string"}}},
"ModelsInfo": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"type": "string"}, "data": {"type": "array", "items": {"$ref": "#/components/schemas/ModelInfo"}}}},
"RecentRequests": {"type": "object", "required": ["requests"], "properties": {
  "requests": {"type": "array", "items": {"type": "object", "required": ["timestamp", "request_id", "method", "route", "status", "total_ms"], "properties": {
    "timestamp": {"type": "string"}, "request_id": {"type": "string"}, "method": {"type": "string"}, "route": {"type": "string"},
    "status": {"type": "integer"}, "total_ms": {"type": "number"}}}}}},
"SimpleToken": {"type": "object", "required": ["id", "text", "start", "stop"], "properties": {
  "id": {"type": "integer", "minimum": 0}, "text": {"type": "string"},
  "start": {"type": "integer", "minimum": 0}, "stop": {"type": "integer", "minimum": 0}}},
"TokenizeResponse": {"type": "array", "items": {"$ref": "#/components/schemas/SimpleToken"}},
"ChatTokenizeResponse": {"type": "object", "required": ["tokenize_response", "templated_text"], "properties": {
  "tokenize_response": {"$ref": "#/components/schemas/TokenizeResponse"}, "templated_text": {"type": "string"}}}
})json";

}  // namespace tgi::http
