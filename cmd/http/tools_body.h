// The members of a chat's body about tools and reasoning: OpenAI's, with the spellings that TGI,
// vLLM and OpenRouter have for some of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cmd/http/body_table.h"
#include "ipc/protocol.h"

namespace tgi::http {

struct ToolFields {
  std::optional<OrderedJson> tools;
  std::optional<OrderedJson> tool_choice;
  std::optional<bool> parallel_tool_calls;
  std::optional<std::string> tool_prompt;
};

struct ReasoningFields {
  std::optional<std::string> reasoning_effort;
  std::optional<OrderedJson> reasoning;  // {effort, max_tokens, exclude, enabled}
  std::optional<int64_t> thinking_token_budget;
  std::optional<bool> include_reasoning;
};

// What they come to, for the daemon.
struct ToolsAsked {
  std::optional<OrderedJson> tools;  // nothing where none are to be shown
  std::optional<ipc::ToolChoice> choice;
  bool parallel = true;
  std::optional<std::string> tool_prompt;
};
// Throws 422 (tool_error) for a choice of what is no tool, and for every tool when grammars are
// disabled, which calls are made with.
ToolsAsked tools_of(const ToolFields& fields, bool supports_grammars);

struct ReasoningAsked {
  std::optional<std::string> effort;
  std::optional<int64_t> max_tokens;
  bool is_told = true;  // to the client
};
ReasoningAsked reasoning_of(const ReasoningFields& fields);

}  // namespace tgi::http
