// The bodies of Anthropic's Messages API and what they come to: a request to the daemon as a chat
// makes one.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "cmd/http/openai_body.h"

namespace tgi::http {

// What both routes take. `stop_sequences` is the parameters' stop.
struct CountTokensBody : OpenAiParameters {
  OrderedJson messages;
  std::optional<OrderedJson> system;         // a text or text blocks
  std::optional<OrderedJson> tools;          // {name, description, input_schema}
  std::optional<OrderedJson> tool_choice;    // {type, name, disable_parallel_tool_use}
  std::optional<OrderedJson> thinking;       // {type, budget_tokens, display}
  std::optional<OrderedJson> output_config;  // {effort, format}
  std::optional<OrderedJson> output_format;  // its older name for a format
  std::optional<OrderedJson> context_management;
};
struct MessagesBody : CountTokensBody {
  std::optional<OrderedJson> metadata;
  std::optional<OrderedJson> thread;
};

template <>
std::span<const BodyField<CountTokensBody>> body_fields<CountTokensBody>();
template <>
std::span<const BodyField<MessagesBody>> body_fields<MessagesBody>();
template <>
std::span<const ExtraField> extra_fields<CountTokensBody>();
template <>
std::span<const ExtraField> extra_fields<MessagesBody>();
template <>
struct SchemaName<CountTokensBody> {
  static constexpr std::string_view value = "CountTokensRequest";
};
template <>
struct SchemaName<MessagesBody> {
  static constexpr std::string_view value = "MessagesRequest";
};

struct MessagesAsk {
  ipc::GenerateRequest request;
  bool tells_thinking = true;  // false: its blocks are empty
};

// Throw the first rule that is broken. The model is not looked at.
MessagesAsk read_messages_ask(const MessagesBody& body, const ApiOptions& options);
// The conversation alone, to be counted.
ipc::GenerateRequest read_count_ask(const CountTokensBody& body, const ApiOptions& options);

// Messages of /v1/chat/completions: turns of one role that follow each other are one, results of
// tools are messages of their own, thinking is reasoning. Throws for what no model here reads, with
// its path.
OrderedJson messages_of_blocks(const std::optional<OrderedJson>& system,
                               const OrderedJson& messages);

// Our words for what the body has.
std::span<const Term> anthropic_terms();

}  // namespace tgi::http
