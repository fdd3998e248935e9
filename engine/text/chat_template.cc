#include "engine/text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/member_uses.h"
#include "engine/text/jinja/parser.h"
#include "engine/text/jinja/text.h"

namespace tgi {
namespace {

// Put behind the text of the last message to find its end again; what comes from here on is cut.
constexpr std::string_view kEndTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kEndTagBare = kEndTag.substr(0, kEndTag.size() - 1);

constexpr std::array<const char*, 3> kReasoningNames = {"reasoning_content", "thinking",
                                                        "reasoning"};

// What a request says in other ways, and transformers takes as arguments of its own.
constexpr std::array<std::string_view, 7> kOwnVariables = {
    "messages",      "tools",   "documents", "add_generation_prompt", "continue_final_message",
    "chat_template", "tokenize"};

std::tm system_local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

using KeepsNull = std::function<bool(const std::string& member)>;

// Reasoning goes by several names; it gets the one that templates read, and `thinking`.
OrderedJson plain_message(const OrderedJson& message, size_t index, const KeepsNull& keeps_null) {
  if (!message.is_object()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("messages[{}]: expected an object with role and content, got {}", index,
                            message.type_name()));
  }
  OrderedJson members = OrderedJson::object();
  for (const auto& [key, value] : message.items()) {
    if (!value.is_null() || keeps_null(key)) members[key] = value;
  }
  const auto given = [&](const char* name) {
    return members.contains(name) && !members[name].is_null();
  };
  const auto named = std::find_if(kReasoningNames.begin(), kReasoningNames.end(), given);
  if (named == kReasoningNames.end()) return members;
  const OrderedJson reasoning = members[*named];
  if (!members.contains("thinking")) {
    OrderedJson with_thinking = OrderedJson::object();
    with_thinking["thinking"] = reasoning;
    for (const auto& [key, value] : members.items()) with_thinking[key] = value;
    members = std::move(with_thinking);
  }
  members["reasoning_content"] = reasoning;
  return members;
}

OrderedJson plain_messages(const OrderedJson& messages, const KeepsNull& keeps_null) {
  if (!messages.is_array() || messages.empty()) {
    throw Error(Code::kInvalidArgument, "messages: expected an array of at least one message");
  }
  OrderedJson plain = OrderedJson::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    plain.push_back(plain_message(messages[i], i, keeps_null));
  }
  return plain;
}

// Whether a member is null and would be left out.
bool has_null_member(const OrderedJson& messages, const KeepsNull& keeps_null) {
  for (const OrderedJson& message : messages) {
    for (const auto& [key, value] : message.items()) {
      if (value.is_null() && !keeps_null(key)) return true;
    }
  }
  return false;
}

// The text of a list of parts, for templates that know texts only.
std::string text_of_parts(const OrderedJson& parts, size_t index) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const OrderedJson& part = parts[i];
    const bool is_text = part.is_object() && part.value("type", OrderedJson("text")) == "text" &&
                         part.contains("text") && part["text"].is_string();
    if (!is_text) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("messages[{}].content[{}]: expected a part of type text, the only "
                              "one this model's chat template knows",
                              index, i));
    }
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

void join_parts(OrderedJson& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto content = messages[i].find("content");
    if (content == messages[i].end() || !content->is_array()) continue;
    *content = text_of_parts(*content, i);
  }
}

// Marks the end of the last message. Returns its text without the mark.
std::string tag_final_message(OrderedJson& messages) {
  OrderedJson& last = messages.back();
  if (!last.contains("content") || last["content"].is_null()) {
    throw Error(Code::kInvalidArgument,
                "continue_final_message: the last message has no content to continue");
  }
  OrderedJson* text = &last["content"];
  if (text->is_array()) {
    const auto part = std::find_if(text->rbegin(), text->rend(), [](const OrderedJson& candidate) {
      return candidate.is_object() && candidate.contains("text");
    });
    text = part == text->rend() ? nullptr : &(*part)["text"];
  }
  if (text == nullptr || !text->is_string()) {
    throw Error(Code::kInvalidArgument,
                "continue_final_message: the last message has no text to continue");
  }
  std::string content = text->get<std::string>();
  *text = content + std::string(kEndTag);
  return content;
}

// What precedes the mark. A template that strips the content has also stripped the space that ends
// the mark; then the white space before it goes as well.
std::string cut_at_tag(std::string rendered, const std::string& content) {
  const size_t tag = rendered.rfind(kEndTagBare);
  const std::string_view trimmed = jinja::strip(content, true, true);
  if (tag == std::string::npos || rendered.find(trimmed) == std::string::npos) {
    throw Error(Code::kInvalidArgument,
                "continue_final_message: the last message does not appear in the rendered "
                "conversation; does the chat template drop or change it?");
  }
  const bool keeps_space = rendered.compare(tag, kEndTag.size(), kEndTag) == 0;
  rendered.resize(tag);
  if (keeps_space) return rendered;
  return std::string(jinja::strip(rendered, false, true));
}

}  // namespace

struct ChatTemplate::Parsed {
  std::string name;
  std::string source;
  jinja::Program program;
  jinja::MemberUses uses;
};

ChatTemplate ChatTemplate::parse(std::string_view source,
                                 SpecialTokens tokens,
                                 const jinja::Limits& limits) {
  return parse({Named{"default", std::string(source)}}, std::move(tokens), limits);
}

ChatTemplate ChatTemplate::parse(const std::vector<Named>& sources,
                                 SpecialTokens tokens,
                                 const jinja::Limits& limits) {
  ChatTemplate result;
  result.tokens_ = std::move(tokens);
  result.limits_ = limits;
  for (const Named& named : sources) {
    const std::string where =
        sources.size() == 1 ? "chat template" : fmt::format("chat template '{}'", named.name);
    if (!is_valid_utf8(named.source)) {
      throw Error(Code::kInvalidArgument, where + ": the text is not valid UTF-8");
    }
    try {
      jinja::Program program = jinja::parse_template(named.source, limits);
      jinja::MemberUses uses = jinja::find_member_uses(program);
      result.templates_.push_back(std::make_shared<const Parsed>(
          Parsed{named.name, named.source, std::move(program), std::move(uses)}));
    } catch (const Error& error) {
      throw error.in(where);
    }
  }
  return result;
}

std::vector<std::string> ChatTemplate::names() const {
  std::vector<std::string> names;
  for (const auto& parsed : templates_) names.push_back(parsed->name);
  return names;
}

bool ChatTemplate::contains(std::string_view text, bool has_tools) const {
  return choose(has_tools).source.find(text) != std::string::npos;
}

const ChatTemplate::Parsed& ChatTemplate::choose(bool has_tools) const {
  if (templates_.size() == 1) return *templates_.front();
  for (const std::string_view wanted : {"tool_use", "default"}) {
    if (wanted == "tool_use" && !has_tools) continue;
    for (const auto& parsed : templates_) {
      if (parsed->name == wanted) return *parsed;
    }
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("the model has several chat templates and none is called 'default': {}",
                          fmt::join(names(), ", ")));
}

bool ChatTemplate::mentions(std::string_view variable, bool has_tools) const {
  const auto& symbols = choose(has_tools).program.symbols;
  return std::find(symbols.begin(), symbols.end(), variable) != symbols.end();
}

bool ChatTemplate::takes_parts(bool has_tools) const {
  return choose(has_tools).uses.takes_parts;
}

std::string ChatTemplate::render(const OrderedJson& messages, const RenderOptions& options) const {
  const Parsed& chosen = choose(options.tools != nullptr);
  const auto asks = [&](const std::string& member) {
    return chosen.uses.compared_with_none.count(member) != 0;
  };
  OrderedJson plain = plain_messages(messages, asks);
  try {
    return render_plain(chosen, std::move(plain), options);
  } catch (const Error& error) {
    if (!has_null_member(messages, asks)) throw;
    try {
      const KeepsNull always = [](const std::string&) { return true; };
      return render_plain(chosen, plain_messages(messages, always), options);
    } catch (const Error&) {
      throw error;  // the one of the usual way
    }
  }
}

std::string ChatTemplate::render_plain(const Parsed& chosen,
                                       OrderedJson plain,
                                       const RenderOptions& options) const {
  if (!chosen.uses.takes_parts && !options.keeps_parts) join_parts(plain);
  std::string content;
  if (options.continue_final_message) {
    if (options.add_generation_prompt) {
      throw Error(Code::kInvalidArgument,
                  "continue_final_message and add_generation_prompt exclude each other");
    }
    if (chosen.source.find("content") == std::string::npos) {
      throw Error(Code::kInvalidArgument,
                  "continue_final_message: the chat template never reads a message's content");
    }
    content = tag_final_message(plain);
  }
  jinja::Interpreter interpreter(chosen.program, limits_,
                                 options.local_time ? options.local_time : &system_local_time);
  const auto set = [&](std::string_view name, const OrderedJson& value) {
    interpreter.set_variable(
        name, [&](jinja::Budget& budget) { return jinja::from_json(value, budget); });
  };
  const OrderedJson none;
  for (const auto& [name, value] : tokens_) set(name, value);
  set("messages", plain);
  set("tools", options.tools != nullptr ? *options.tools : none);
  set("documents", options.documents != nullptr ? *options.documents : none);
  set("add_generation_prompt", options.add_generation_prompt);
  for (const auto& [name, value] : options.extra.items()) {
    if (std::find(kOwnVariables.begin(), kOwnVariables.end(), name) != kOwnVariables.end()) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("chat_template_kwargs: '{}' is reserved: the request sets it itself", name));
    }
    set(name, value);
  }
  std::string rendered = interpreter.render();
  return options.continue_final_message ? cut_at_tag(std::move(rendered), content) : rendered;
}

}  // namespace tgi
