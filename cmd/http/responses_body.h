// The body of POST /v1/responses and what it comes to: a request to the daemon as a chat makes one,
// and the response object as it begins.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/openai_body.h"
#include "cmd/http/response_store.h"
#include "cmd/http/responses_tools.h"

namespace tgi::http {

// OpenAI's, and of the parameters of chats those that OpenAI's API has not, for who wants them.
struct ResponsesBody : OpenAiParameters, ToolFields {
  std::optional<OrderedJson> input;  // a text or a list of items
  std::optional<std::string> instructions;
  std::optional<OrderedJson> text;       // {format, verbosity}
  std::optional<OrderedJson> reasoning;  // {effort, summary, max_tokens}
  std::optional<uint32_t> top_logprobs;
  std::vector<std::string> include;
  std::optional<OrderedJson> metadata;
  std::optional<std::string> previous_response_id;
  std::optional<std::string> truncation;  // auto, disabled
  std::optional<bool> store;
  std::optional<bool> background;
  std::optional<std::string> user;
  std::optional<std::string> safety_identifier;
  std::optional<std::string> prompt_cache_key;
  std::optional<OrderedJson> prompt_cache_options;
  std::optional<OrderedJson> chat_template_kwargs;
};

template <>
std::span<const BodyField<ResponsesBody>> body_fields<ResponsesBody>();
template <>
std::span<const ExtraField> extra_fields<ResponsesBody>();
template <>
struct SchemaName<ResponsesBody> {
  static constexpr std::string_view value = "ResponsesRequest";
};

struct ResponsesAsk {
  ipc::GenerateRequest request;
  OrderedJson items;  // that the body gives, in the form they are kept in
  ToolNames tool_names;
  std::vector<StoredItemsPtr> turns_before;  // of previous_response_id
  bool lists_logprobs = false;
  int64_t num_top_logprobs = 0;
  bool tells_encrypted = false;  // reasoning also as what clients take for encrypted
  bool is_stored = false;
  bool is_background = false;
  bool is_streamed = false;
  bool may_be_shortened = false;  // where the conversation is too long
  OrderedJson told;               // the members of the response object that repeat the body
};

// Throws the first rule that is broken; `store`: null where none is kept. The model is not looked
// at.
ResponsesAsk read_responses_ask(const ResponsesBody& body,
                                const ApiOptions& options,
                                ResponseStore* store);

// The request without the oldest turns of the conversation, as few as make it fit; nothing where it
// fits as it is, or none that are left out would help. `count_tokens`: of a request.
std::optional<ipc::GenerateRequest> shortened(
    const ResponsesAsk& ask,
    const ApiOptions& options,
    const std::function<int64_t(const ipc::GenerateRequest&)>& count_tokens);

// Our words for what the body has, where the daemon or a helper of chats refuses it.
std::span<const Term> responses_terms();

}  // namespace tgi::http
