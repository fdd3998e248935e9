#include "cmd/http/anthropic_body.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tgi::http {
namespace {

constexpr std::string_view kCached = "every prompt is looked up in the cache";

constexpr std::array kToolMemberExtras = {
    ExtraField{"cache_control", kAnything, kCached},
    ExtraField{"defer_loading", kAnything, "every tool is shown to the model"},
    ExtraField{"eager_input_streaming", kAnything, "inputs are always told while they are written"},
    ExtraField{"allowed_callers", R"([["direct"]])", "calls are made by the model alone"},
};

const OrderedJson* given_member(const OrderedJson& json, const char* name) {
  const auto it = json.find(name);
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

void check_object(const OrderedJson& json,
                  const std::string& path,
                  std::initializer_list<std::string_view> known) {
  if (!json.is_object()) fail_body_type(path, "an object", json);
  for (const auto& item : json.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    check_extra_field(path + "." + item.key(), item.key(), item.value(), {},
                      {known.begin(), known.size()});
  }
}

// A custom tool as a function of chats.
OrderedJson function_of_tool(const OrderedJson& tool, const std::string& path) {
  static constexpr std::array<std::string_view, 6> kKnown = {
      "type", "name", "description", "input_schema", "strict", "input_examples"};
  if (!tool.is_object()) fail_body_type(path, "an object", tool);
  if (const OrderedJson* const type = given_member(tool, "type");
      type != nullptr && *type != OrderedJson("custom")) {
    throw ApiError(422, "validation",
                   fmt::format("Input validation error: `{}`: tools of type {} are not supported, "
                               "this server has custom tools alone (name, description, "
                               "input_schema)",
                               path, dump_json(*type).substr(0, 100)),
                   "unsupported_feature", path + ".type");
  }
  for (const auto& item : tool.items()) {
    if (std::ranges::find(kKnown, item.key()) != kKnown.end()) continue;
    check_extra_field(path + "." + item.key(), item.key(), item.value(), kToolMemberExtras, kKnown);
  }
  if (given_member(tool, "input_schema") == nullptr)
    fail_body(path + ".input_schema", "missing field");
  OrderedJson function = {{"name", tool.value("name", OrderedJson())}};
  std::string description;
  if (const OrderedJson* const text = given_member(tool, "description")) {
    read_body_value(*text, path + ".description", description);
  }
  if (const OrderedJson* const examples = given_member(tool, "input_examples")) {
    if (!examples->is_array()) {
      fail_body_type(path + ".input_examples", "an array of objects", *examples);
    }
    for (const OrderedJson& example : *examples) {
      description += (description.empty() ? "Example: " : "\nExample: ") + dump_json(example);
    }
  }
  if (!description.empty()) function["description"] = description;
  function["parameters"] = tool["input_schema"];
  if (const OrderedJson* const strict = given_member(tool, "strict")) function["strict"] = *strict;
  return {{"type", "function"}, {"function", std::move(function)}};
}

std::optional<OrderedJson> functions_of_tools(const std::optional<OrderedJson>& tools) {
  if (!tools) return std::nullopt;
  if (!tools->is_array()) fail_body_type("tools", "an array of objects", *tools);
  OrderedJson out = OrderedJson::array();
  for (size_t i = 0; i < tools->size(); ++i) {
    out.push_back(function_of_tool((*tools)[i], fmt::format("tools[{}]", i)));
  }
  return out;
}

void read_tool_choice(const OrderedJson& choice, ToolFields& out) {
  check_object(choice, "tool_choice", {"type", "name", "disable_parallel_tool_use"});
  const OrderedJson* const type = given_member(choice, "type");
  if (type == nullptr) fail_body("tool_choice.type", "missing field");
  std::string kind;
  read_body_value(*type, "tool_choice.type", kind);
  if (kind == "tool") {
    const OrderedJson* const name = given_member(choice, "name");
    if (name == nullptr) fail_body("tool_choice.name", "missing field");
    out.tool_choice = OrderedJson{{"type", "function"}, {"name", *name}};
  } else if (kind == "auto" || kind == "none") {
    out.tool_choice = kind;
  } else if (kind == "any") {
    out.tool_choice = "required";
  } else {
    fail_body("tool_choice.type", fmt::format("unknown type `{}`, expected auto, any, tool or none",
                                              kind.substr(0, 100)));
  }
  if (const OrderedJson* const off = given_member(choice, "disable_parallel_tool_use")) {
    bool is_off = false;
    read_body_value(*off, "tool_choice.disable_parallel_tool_use", is_off);
    out.parallel_tool_calls = !is_off;
  }
}

ToolsAsked tools_of_body(const CountTokensBody& body, bool supports_grammars) {
  ToolFields fields;
  fields.tools = functions_of_tools(body.tools);
  if (body.tool_choice) read_tool_choice(*body.tool_choice, fields);
  return tools_of(fields, supports_grammars);
}

struct ThinkingAsked {
  std::optional<std::string> effort;
  std::optional<int64_t> max_tokens;
  std::optional<OrderedJson> template_variables;
  bool is_told = true;
};

void read_thinking(const OrderedJson& thinking, ThinkingAsked& out) {
  check_object(thinking, "thinking", {"type", "budget_tokens", "display"});
  const OrderedJson* const type = given_member(thinking, "type");
  if (type == nullptr) fail_body("thinking.type", "missing field");
  if (const OrderedJson* const display = given_member(thinking, "display")) {
    if (*display != OrderedJson("summarized") && *display != OrderedJson("omitted")) {
      fail_body("thinking.display", "expected summarized or omitted");
    }
    out.is_told = *display != OrderedJson("omitted");
  }
  const OrderedJson* const budget = given_member(thinking, "budget_tokens");
  if (*type == OrderedJson("disabled")) {
    out.effort = "none";
    return;
  }
  if (*type == OrderedJson("enabled")) {
    if (budget == nullptr) fail_body("thinking.budget_tokens", "missing field");
    read_body_value(*budget, "thinking.budget_tokens", out.max_tokens.emplace());
    require(*out.max_tokens >= 1, "`thinking.budget_tokens` must be strictly positive. Given: {}",
            *out.max_tokens);
  } else if (*type != OrderedJson("adaptive")) {
    fail_body("thinking.type",
              fmt::format("unknown type {}, expected enabled, disabled or adaptive",
                          dump_json(*type).substr(0, 100)));
  }
  // What templates of models that think when they are told to call it.
  out.template_variables = OrderedJson{{"enable_thinking", true}, {"thinking", true}};
}

// {"type": "json_schema", "schema": ...} as the response_format of chats.
OrderedJson response_format_of(const OrderedJson& format, const std::string& path) {
  check_object(format, path, {"type", "schema"});
  if (format.value("type", OrderedJson()) != OrderedJson("json_schema")) {
    fail_body(path + ".type", "expected json_schema");
  }
  if (given_member(format, "schema") == nullptr) fail_body(path + ".schema", "missing field");
  return {{"type", "json_schema"}, {"json_schema", {{"schema", format["schema"]}}}};
}

struct OutputAsked {
  std::optional<std::string> effort;
  std::optional<OrderedJson> response_format;
};

OutputAsked read_output_config(const CountTokensBody& body) {
  OutputAsked out;
  if (body.output_config) {
    const OrderedJson& config = *body.output_config;
    check_object(config, "output_config", {"effort", "format"});
    if (const OrderedJson* const effort = given_member(config, "effort")) {
      read_body_value(*effort, "output_config.effort", out.effort.emplace());
      ReasoningFields fields;
      fields.reasoning_effort = out.effort;
      (void)reasoning_of(fields);
    }
    if (const OrderedJson* const format = given_member(config, "format")) {
      out.response_format = response_format_of(*format, "output_config.format");
    }
  }
  if (body.output_format) {
    require(!out.response_format,
            "`output_format` and `output_config.format` are the same: give one of them");
    out.response_format = response_format_of(*body.output_format, "output_format");
  }
  return out;
}

// Anthropic's ways to make a conversation shorter: only what leaves all as it is.
void check_context_management(const OrderedJson& json) {
  check_object(json, "context_management", {"edits"});
  const OrderedJson* const edits = given_member(json, "edits");
  if (edits == nullptr) return;
  if (!edits->is_array()) fail_body_type("context_management.edits", "an array", *edits);
  for (size_t i = 0; i < edits->size(); ++i) {
    const OrderedJson& edit = (*edits)[i];
    const std::string path = fmt::format("context_management.edits[{}]", i);
    if (!edit.is_object()) fail_body_type(path, "an object", edit);
    const bool keeps_all =
        edit.value("type", OrderedJson()) == OrderedJson("clear_thinking_20251015") &&
        edit.value("keep", OrderedJson()) == OrderedJson("all");
    if (keeps_all) continue;
    throw ApiError(422, "validation",
                   fmt::format("Input validation error: `{}` is not supported: conversations are "
                               "never made shorter here; leave it out",
                               path),
                   "unsupported_feature", path);
  }
}

ThinkingAsked thinking_of(const CountTokensBody& body, const OutputAsked& output) {
  ThinkingAsked out;
  if (body.thinking) read_thinking(*body.thinking, out);
  if (!out.effort) out.effort = output.effort;
  return out;
}

// Those of both routes.
template <typename B>
std::array<BodyField<B>, 9> conversation_rows() {
  using P = OpenAiParameters;
  using C = CountTokensBody;
  return {{
      inherited_field<B, &P::model>("model", {"the name of the model, or of a LoRA adapter to "
                                              "answer by; \"tgi\": whatever is served"}),
      inherited_field<B, &C::messages>(
          "messages",
          {.description = "turns of user and assistant: texts, or blocks of text, document "
                          "(as text), thinking, tool_use and tool_result",
           .required = true}),
      inherited_field<B, &C::system>("system", {"the system's message: a text or text blocks"}),
      inherited_field<B, &C::tools>("tools", {"[{name, description, input_schema, strict}]: what "
                                              "the answer may call"}),
      inherited_field<B, &C::tool_choice>(
          "tool_choice", {"{\"type\": \"auto\", \"any\", \"tool\" with a name, or \"none\", "
                          "disable_parallel_tool_use}"}),
      inherited_field<B, &C::thinking>(
          "thinking", {"{\"type\": \"enabled\", budget_tokens}, {\"type\": \"adaptive\"} or "
                       "{\"type\": \"disabled\"}; absent: as the chat template has it"}),
      inherited_field<B, &C::output_config>(
          "output_config", {"{effort}: low, medium, high, xhigh or max, for the template; "
                            "{format}: {\"type\": \"json_schema\", schema}"}),
      inherited_field<B, &C::output_format>("output_format",
                                            {"the older name of output_config.format"}),
      inherited_field<B, &C::context_management>("context_management",
                                                 {"only edits that keep all are taken"}),
  }};
}

constexpr std::array kSharedExtras = {
    ExtraField{"cache_control", kAnything, kCached},
    ExtraField{"speed", R"(["standard"])", "there is one speed"},
    ExtraField{"user_profile_id", kAnything, "a name for Anthropic's accounts"},
    ExtraField{"workspace_id", kAnything, "a name for Anthropic's accounts"},
    ExtraField{"mcp_servers", "[[]]", "tools are run by clients alone"},
};

}  // namespace

template <>
std::span<const BodyField<CountTokensBody>> body_fields<CountTokensBody>() {
  static const auto kFields = conversation_rows<CountTokensBody>();
  return kFields;
}

template <>
std::span<const BodyField<MessagesBody>> body_fields<MessagesBody>() {
  using B = MessagesBody;
  using P = OpenAiParameters;
  static const auto kFields = [] {
    const auto shared = conversation_rows<B>();
    std::vector<BodyField<B>> out(shared.begin(), shared.end());
    out.insert(
        out.end(),
        {inherited_field<B, &P::max_tokens>(
             "max_tokens",
             {.description = "of the answer with its thinking; 0: the prompt alone is computed",
              .required = true}),
         inherited_field<B, &P::stop>("stop_sequences",
                                      {"a list of texts that end the answer; cut off"}),
         inherited_field<B, &P::temperature>(
             "temperature", {.description = "0: always the most likely token; default 1",
                             .range = {.low = 0, .rule = "`temperature` must be >= 0.0"}}),
         inherited_field<B, &P::top_p>("top_p", {.description = "nucleus sampling; 1 is off",
                                                 .range = {.low = 0,
                                                           .high = 1,
                                                           .above_low = true,
                                                           .rule = "`top_p` must be > 0.0 and <= "
                                                                   "1.0"}}),
         inherited_field<B, &P::top_k>("top_k",
                                       {.description = "the k most likely tokens; 0 is off",
                                        .range = {.low = 0, .rule = "`top_k` must be >= 0"}}),
         inherited_field<B, &P::seed>("seed", {"as OpenAI's: of the draws"}),
         inherited_field<B, &P::adapter_source>(
             "adapter_source",
             {"as LoRAX: where an adapter that `model` names is: hub, local or s3"}),
         inherited_field<B, &P::api_token>("api_token",
                                           {"as LoRAX: to the hub, for a private adapter"}),
         body_field<&B::metadata>("metadata", {"{user_id}, which nothing looks at"}),
         body_field<&B::thread>("thread", {"refused in the way that clients know: they send the "
                                           "whole conversation then"}),
         inherited_field<B, &P::stream>("stream", {"answer with server-sent events"})});
    return out;
  }();
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<CountTokensBody>() {
  return kSharedExtras;
}

template <>
std::span<const ExtraField> extra_fields<MessagesBody>() {
  static const auto kFields = [] {
    std::vector<ExtraField> out(kSharedExtras.begin(), kSharedExtras.end());
    out.push_back({"service_tier", kAnything, "there is one tier"});
    out.push_back({"container", "[]", "nothing is run here"});
    out.push_back({"inference_geo", "[]", "this machine is where it is"});
    out.push_back(
        {"diagnostics", "[{}, {\"previous_message_id\":null}]", "caches are not explained"});
    return out;
  }();
  return kFields;
}

std::span<const Term> anthropic_terms() {
  static constexpr std::array<Term, 9> kTerms = {{
      {"response_format.json_schema", "output_config.format"},
      {"response_format", "output_config.format"},
      {"`inputs`", "`messages`"},
      {"max_new_tokens", "max_tokens"},
      {".function.parameters", ".input_schema"},
      {".function.", "."},
      {"reasoning_effort", "output_config.effort"},
      {"`stop`", "`stop_sequences`"},
      {"stop[", "stop_sequences["},
  }};
  return kTerms;
}

ipc::GenerateRequest read_count_ask(const CountTokensBody& body, const ApiOptions& options) {
  if (body.context_management) check_context_management(*body.context_management);
  const ThinkingAsked thinking = thinking_of(body, read_output_config(body));
  ipc::GenerateRequest out;
  out.messages = messages_of_blocks(body.system, body.messages);
  out.continue_final_message = ends_with_assistant(*out.messages);
  ToolsAsked tools = tools_of_body(body, options.supports_grammars);
  out.tools = std::move(tools.tools);
  out.tool_choice = std::move(tools.choice);
  if (!tools.parallel) out.parallel_tool_calls = false;
  out.reasoning_effort = thinking.effort;
  out.chat_template_kwargs = thinking.template_variables;
  out.parse_answer = true;
  return out;
}

MessagesAsk read_messages_ask(const MessagesBody& body, const ApiOptions& options) {
  check_ranges(body);
  if (body.metadata) check_object(*body.metadata, "metadata", {"user_id"});
  if (body.thread) {
    throw ApiError(422, "validation",
                   "Input validation error: `thread` is not supported: no conversation is held "
                   "between requests; leave it out and send the whole conversation",
                   std::string(kNoThreads), "thread");
  }
  OpenAiParameters parameters = body;
  if (body.stop && !body.stop->is_array()) {
    fail_body_type("stop_sequences", "an array of strings", *body.stop);
  }
  if (body.stop) {
    const auto num_stop = static_cast<int64_t>(body.stop->size());
    require(num_stop <= options.max_stop_sequences,
            "`stop_sequences` supports up to {} stop sequences (--max-stop-sequences). Given: {}",
            options.max_stop_sequences, num_stop);
  }
  if (parameters.top_k == 0) parameters.top_k.reset();
  const OutputAsked output = read_output_config(body);
  parameters.response_format = output.response_format;
  const ThinkingAsked thinking = thinking_of(body, output);
  require(!thinking.max_tokens || *thinking.max_tokens < *body.max_tokens,
          "`max_tokens` must be greater than `thinking.budget_tokens`. Given: {} and {}",
          *body.max_tokens, thinking.max_tokens.value_or(0));
  MessagesAsk out{.request = read_count_ask(body, options), .tells_thinking = thinking.is_told};
  out.request.stream = body.stream;
  fill_sampling(parameters, options, out.request.params);
  out.request.params.max_reasoning_tokens = thinking.max_tokens;
  return out;
}

}  // namespace tgi::http
