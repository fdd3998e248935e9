#include "cmd/http/responses_body.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/http/responses_items.h"

namespace tgi::http {
namespace {

// What the members `include` asks for that can be had, and those of tools that there are not.
constexpr std::string_view kIncludeLogprobs = "message.output_text.logprobs";
constexpr std::string_view kIncludeEncrypted = "reasoning.encrypted_content";
constexpr std::array<std::string_view, 6> kIncludeOfTools = {
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs"};

constexpr std::array kReasoningExtras = {
    ExtraField{"summary", kAnything, "the reasoning itself is told"},
    ExtraField{"generate_summary", kAnything, "the reasoning itself is told"},
    ExtraField{"context", R"(["auto", "all_turns"])", "the chat template decides what it shows"},
    ExtraField{"mode", R"(["standard"])", "there is one"},
};

// `text.format` as the response_format of chats.
std::optional<OrderedJson> format_of(const std::optional<OrderedJson>& text) {
  static constexpr std::array<std::string_view, 2> kKnown = {"format", "verbosity"};
  if (!text) return std::nullopt;
  if (!text->is_object()) fail_body_type("text", "an object", *text);
  for (const auto& item : text->items()) {
    if (std::ranges::find(kKnown, item.key()) != kKnown.end()) continue;
    check_extra_field("text." + item.key(), item.key(), item.value(), {}, kKnown);
  }
  const auto format = text->find("format");
  if (format == text->end() || format->is_null()) return std::nullopt;
  if (!format->is_object()) fail_body_type("text.format", "an object with a type", *format);
  if (format->value("type", OrderedJson()) != OrderedJson("json_schema")) return *format;
  OrderedJson schema = *format;
  schema.erase("type");
  if (!schema.contains("schema")) fail_body("text.format.schema", "missing field");
  return OrderedJson{{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

// REQUIRES: format_of took it.
std::optional<std::string> verbosity_of(const std::optional<OrderedJson>& text) {
  if (!text || !text->contains("verbosity") || (*text)["verbosity"].is_null()) return std::nullopt;
  std::string out;
  read_body_value((*text)["verbosity"], "text.verbosity", out);
  return out;
}

ReasoningAsked read_reasoning_of(const std::optional<OrderedJson>& reasoning) {
  static constexpr std::array<std::string_view, 2> kKnown = {"effort", "max_tokens"};
  ReasoningFields fields;
  if (!reasoning) return reasoning_of(fields);
  if (!reasoning->is_object()) fail_body_type("reasoning", "an object", *reasoning);
  fields.reasoning = OrderedJson::object();
  for (const auto& item : reasoning->items()) {
    if (std::ranges::find(kKnown, item.key()) != kKnown.end()) {
      (*fields.reasoning)[item.key()] = item.value();
    } else {
      check_extra_field("reasoning." + item.key(), item.key(), item.value(), kReasoningExtras,
                        kKnown);
    }
  }
  return reasoning_of(fields);
}

void read_include(const ResponsesBody& body, ResponsesAsk& ask) {
  for (size_t i = 0; i < body.include.size(); ++i) {
    const std::string& name = body.include[i];
    if (name == kIncludeLogprobs) {
      ask.lists_logprobs = true;
    } else if (name == kIncludeEncrypted) {
      ask.tells_encrypted = true;
    } else if (std::ranges::find(kIncludeOfTools, name) == kIncludeOfTools.end()) {
      fail_body(fmt::format("include[{}]", i),
                fmt::format("unknown value `{}`, expected one of {}, {}, {}", name.substr(0, 100),
                            kIncludeLogprobs, kIncludeEncrypted, fmt::join(kIncludeOfTools, ", ")));
    }
  }
}

void check_metadata(const OrderedJson& metadata) {
  constexpr size_t kMaxPairs = 16;
  constexpr size_t kMaxKeyCharacters = 64;
  constexpr size_t kMaxValueCharacters = 512;
  // Texts of JSON are whole UTF-8: what is no continuation begins a character.
  const auto num_characters = [](const std::string& text) {
    return static_cast<size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  };
  if (!metadata.is_object()) fail_body_type("metadata", "an object of texts", metadata);
  require(metadata.size() <= kMaxPairs, "`metadata` must have at most {} pairs. Given: {}",
          kMaxPairs, metadata.size());
  for (const auto& item : metadata.items()) {
    const std::string path = "metadata." + item.key().substr(0, 100);
    std::string value;
    read_body_value(item.value(), path, value);
    require(num_characters(item.key()) <= kMaxKeyCharacters,
            "`{}`: a key must have at most {} characters", path, kMaxKeyCharacters);
    require(num_characters(value) <= kMaxValueCharacters,
            "`{}`: a value must have at most {} characters", path, kMaxValueCharacters);
  }
}

// What the response object repeats of the body, in OpenAI's order.
OrderedJson told_members(const ResponsesBody& body, const ResponsesAsk& ask) {
  const auto or_null = [](const auto& value) {
    return value ? OrderedJson(*value) : OrderedJson();
  };
  const auto or_else = [](const auto& value, OrderedJson otherwise) {
    return value ? OrderedJson(*value) : std::move(otherwise);
  };
  OrderedJson text = or_else(body.text, OrderedJson::object());
  if (!text.contains("format") || text["format"].is_null()) text["format"] = {{"type", "text"}};
  OrderedJson reasoning = {{"effort", nullptr}, {"summary", nullptr}};
  if (body.reasoning && body.reasoning->contains("effort")) {
    reasoning["effort"] = (*body.reasoning)["effort"];
  }
  return {{"background", body.background.value_or(false)},
          {"instructions", or_null(body.instructions)},
          {"max_output_tokens", or_null(body.max_tokens)},
          {"max_tool_calls", nullptr},
          {"metadata", or_else(body.metadata, OrderedJson::object())},
          {"parallel_tool_calls", body.parallel_tool_calls.value_or(true)},
          {"previous_response_id", or_null(body.previous_response_id)},
          {"prompt_cache_key", or_null(body.prompt_cache_key)},
          {"reasoning", std::move(reasoning)},
          {"safety_identifier", or_null(body.safety_identifier)},
          {"service_tier", "default"},
          {"store", ask.is_stored},
          {"temperature", body.temperature.value_or(1)},
          {"text", std::move(text)},
          {"tool_choice", or_else(body.tool_choice, "auto")},
          {"tools", or_else(body.tools, OrderedJson::array())},
          {"top_logprobs", body.top_logprobs.value_or(0)},
          {"top_p", body.top_p.value_or(1)},
          {"truncation", body.truncation.value_or("disabled")},
          {"user", or_null(body.user)}};
}

// Every item of the conversation: of the answers before, and those that are given.
OrderedJson all_items(const ResponsesAsk& ask) {
  OrderedJson out = OrderedJson::array();
  for (const StoredItemsPtr& turn : ask.turns_before) {
    OrderedJson items = OrderedJson::parse(turn->json());
    for (OrderedJson& item : items) out.push_back(std::move(item));
  }
  for (const OrderedJson& item : ask.items) out.push_back(item);
  return out;
}

void read_conversation(const ResponsesBody& body, ResponseStore* store, ResponsesAsk& ask) {
  if (body.previous_response_id) {
    const StoredResponsePtr previous =
        store == nullptr ? nullptr : store->find(*body.previous_response_id);
    if (previous == nullptr) {
      throw ApiError(422, "validation",
                     fmt::format("Previous response with id '{}' not found.",
                                 body.previous_response_id->substr(0, 100)),
                     "previous_response_not_found", "previous_response_id");
    }
    require(!previous->is_running, "`previous_response_id`: {} is still in progress", previous->id);
    ask.turns_before = previous->turns;
  }
  if (!body.input) fail_body("input", "missing field");
  ask.items = read_items(*body.input, [&](const std::string& id) {
    return store == nullptr ? std::nullopt : store->find_item(id);
  });
  ask.request.messages = messages_of_items(body.instructions, all_items(ask));
  require(!ask.request.messages->empty(), "`input` cannot be empty");
}

}  // namespace

ResponsesAsk read_responses_ask(const ResponsesBody& body,
                                const ApiOptions& options,
                                ResponseStore* store) {
  check_ranges(body);
  ResponsesAsk out;
  (void)wants_usage(body);
  read_include(body, out);
  if (body.metadata) check_metadata(*body.metadata);
  check_prompt_cache_options(body.prompt_cache_options);
  out.num_top_logprobs = body.top_logprobs.value_or(0);
  require(out.num_top_logprobs <= options.max_top_logprobs,
          "`top_logprobs` must be >= 0 and <= {}. Given: {}", options.max_top_logprobs,
          out.num_top_logprobs);
  out.lists_logprobs = out.lists_logprobs || out.num_top_logprobs > 0;
  const bool keeps = store != nullptr && store->keeps();
  require(keeps || !body.store.value_or(false),
          "`store`: this server keeps no answers (--max-stored-responses 0)");
  out.is_stored = keeps && body.store.value_or(true);
  out.is_background = body.background.value_or(false);
  out.is_streamed = body.stream;
  require(
      !out.is_background || out.is_stored, "`background`: needs an answer that is kept{}",
      keeps ? ", leave `store` out" : ", and this server keeps none (--max-stored-responses 0)");
  if (body.truncation && *body.truncation != "auto" && *body.truncation != "disabled") {
    fail_body("truncation", "expected auto or disabled");
  }
  out.may_be_shortened = body.truncation == "auto";
  read_conversation(body, store, out);

  OpenAiParameters parameters = body;
  parameters.response_format = format_of(body.text);
  ToolFields fields = body;
  fields.tools = nested_tools(body.tools, out.tool_names);
  fields.tool_choice = shown_tool_choice(body.tool_choice);
  ToolsAsked tools = tools_of(fields, options.supports_grammars);
  const ReasoningAsked reasoning = read_reasoning_of(body.reasoning);
  ipc::GenerateRequest& request = out.request;
  request.chat_template_kwargs =
      template_variables(body.chat_template_kwargs, verbosity_of(body.text), "text.verbosity");
  request.tools = std::move(tools.tools);
  request.tool_choice = std::move(tools.choice);
  if (!tools.parallel) request.parallel_tool_calls = false;
  request.reasoning_effort = reasoning.effort;
  request.parse_answer = true;
  request.keep_alive_seconds = keep_alive_of(body.keep_alive);
  // Which tokens make up a text is told with the tokens alone.
  request.stream = body.stream || out.lists_logprobs;
  fill_sampling(parameters, options, request.params);
  request.params.max_reasoning_tokens = reasoning.max_tokens;
  request.params.top_n_tokens = out.num_top_logprobs;
  out.told = told_members(body, out);
  return out;
}

}  // namespace tgi::http
