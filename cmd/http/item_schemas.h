// What the answers of /v1/responses and /v1/messages hold, as OpenAPI schemas: the names of members
// are OpenAI's and Anthropic's.
#pragma once

#include <string_view>

namespace tgi::http {

inline constexpr std::string_view kItemSchemas = R"json({
"ResponseItem": {"type": "object", "required": ["id", "type"], "properties": {
  "id": {"type": "string"}, "type": {"type": "string", "enum": ["message", "reasoning", "function_call", "function_call_output"]},
  "status": {"type": "string", "enum": ["in_progress", "completed", "incomplete"]},
  "role": {"type": "string"}, "content": {"type": "array", "items": {"type": "object"}},
  "summary": {"type": "array", "items": {"type": "object"}}, "encrypted_content": {"type": "string"},
  "call_id": {"type": "string"}, "name": {"type": "string"}, "arguments": {"type": "string"},
  "output": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}]}}},
"ResponseObject": {"type": "object",
  "required": ["id", "object", "created_at", "status", "model", "output", "parallel_tool_calls", "tool_choice", "tools"], "properties": {
  "id": {"type": "string"}, "object": {"type": "string", "enum": ["response"]}, "created_at": {"type": "integer"},
  "completed_at": {"type": "integer", "nullable": true},
  "status": {"type": "string", "enum": ["in_progress", "completed", "incomplete", "failed"]},
  "error": {"type": "object", "nullable": true}, "incomplete_details": {"type": "object", "nullable": true},
  "model": {"type": "string"}, "output": {"type": "array", "items": {"$ref": "#/components/schemas/ResponseItem"}},
  "parallel_tool_calls": {"type": "boolean"}, "tool_choice": {}, "tools": {"type": "array", "items": {"type": "object"}},
  "usage": {"type": "object", "nullable": true, "properties": {
    "input_tokens": {"type": "integer"}, "output_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"},
    "input_tokens_details": {"type": "object", "properties": {
      "cached_tokens": {"type": "integer"}, "cache_write_tokens": {"type": "integer"}}},
    "output_tokens_details": {"type": "object", "properties": {"reasoning_tokens": {"type": "integer"}}}}}}},
"ResponseEvent": {"type": "object", "required": ["type", "sequence_number"], "properties": {
  "type": {"type": "string"}, "sequence_number": {"type": "integer"}}},
"ResponseTokens": {"type": "object", "required": ["object", "input_tokens"], "properties": {
  "object": {"type": "string", "enum": ["response.input_tokens"]}, "input_tokens": {"type": "integer"}}},
"DeletedResponse": {"type": "object", "required": ["id", "object", "deleted"], "properties": {
  "id": {"type": "string"}, "object": {"type": "string", "enum": ["response"]}, "deleted": {"type": "boolean"}}},
"ResponseItems": {"type": "object", "required": ["object", "data", "first_id", "last_id", "has_more"], "properties": {
  "object": {"type": "string", "enum": ["list"]}, "data": {"type": "array", "items": {"$ref": "#/components/schemas/ResponseItem"}},
  "first_id": {"type": "string"}, "last_id": {"type": "string"}, "has_more": {"type": "boolean"}}},
"Message": {"type": "object", "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"], "properties": {
  "id": {"type": "string"}, "type": {"type": "string", "enum": ["message"]}, "role": {"type": "string", "enum": ["assistant"]},
  "model": {"type": "string"},
  "content": {"type": "array", "items": {"type": "object", "required": ["type"], "properties": {
    "type": {"type": "string", "enum": ["text", "thinking", "tool_use"]}, "text": {"type": "string"},
    "thinking": {"type": "string"}, "signature": {"type": "string"}, "id": {"type": "string"}, "name": {"type": "string"},
    "input": {"type": "object"}}}},
  "stop_reason": {"type": "string", "nullable": true,
    "enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded", null]},
  "stop_sequence": {"type": "string", "nullable": true},
  "usage": {"type": "object", "properties": {
    "input_tokens": {"type": "integer"}, "cache_creation_input_tokens": {"type": "integer"},
    "cache_read_input_tokens": {"type": "integer"}, "output_tokens": {"type": "integer"}}}}},
"MessageEvent": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string"}}},
"MessageTokens": {"type": "object", "required": ["input_tokens"], "properties": {"input_tokens": {"type": "integer"}}},
"AnthropicError": {"type": "object", "required": ["type", "error"], "properties": {
  "type": {"type": "string", "enum": ["error"]},
  "error": {"type": "object", "required": ["type", "message"], "properties": {
    "type": {"type": "string"}, "message": {"type": "string"}}}}}
})json";

}  // namespace tgi::http
