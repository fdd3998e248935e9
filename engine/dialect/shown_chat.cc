#include "engine/dialect/shown_chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "base/bounded_json.h"
#include "base/error.h"
#include "engine/dialect/write_calls.h"

namespace tgi::dialect {
namespace {

template <typename... Args>
[[noreturn]] void refuse_call(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

constexpr std::string_view kProbe = "tgi_probe";

OrderedJson probe_tools() {
  return checked_tools(
      {{{"type", "function"},
        {"function",
         {{"name", "probe"},
          {"description", "a probe"},
          {"parameters",
           {{"type", "object"},
            {"properties", {{kProbe, {{"type", "string"}, {"description", "a probe"}}}}},
            {"required", {kProbe}}}}}}}});
}

constexpr std::array<std::string_view, 3> kReasoningNames = {"reasoning_content", "reasoning",
                                                             "thinking"};

void add_no_reasoning(OrderedJson& message) {
  const auto is_given = [&](std::string_view name) { return message.contains(name); };
  if (std::none_of(kReasoningNames.begin(), kReasoningNames.end(), is_given)) {
    message[std::string(kReasoningNames.front())] = "";
  }
}

// The text of a conversation; nothing where the template fails on it.
std::string render_probe(const ChatTemplate& chat_template,
                         OrderedJson messages,
                         bool needs_reasoning) {
  const OrderedJson tools = probe_tools();
  if (needs_reasoning) add_no_reasoning(messages[1]);
  RenderOptions options;
  options.tools = &tools;
  try {
    return chat_template.render(messages, options);
  } catch (const Error&) {
    return "";
  }
}

bool is_rendered_with_reasoning_alone(const ChatTemplate& chat_template) {
  const OrderedJson messages = {{{"role", "user"}, {"content", "hello"}},
                                {{"role", "assistant"}, {"content", "hello"}},
                                {{"role", "user"}, {"content", "hello"}}};
  return render_probe(chat_template, messages, false).empty() &&
         !render_probe(chat_template, messages, true).empty();
}

OrderedJson conversation_with_call(const OrderedJson& content, const OrderedJson& arguments) {
  return {
      {{"role", "user"}, {"content", "hello"}},
      {{"role", "assistant"},
       {"content", content},
       {"tool_calls",
        {{{"id", "abcdefghi"},
          {"type", "function"},
          {"function", {{"name", "probe"}, {"arguments", arguments}}}}}}},
      {{"role", "tool"}, {"tool_call_id", "abcdefghi"}, {"name", "probe"}, {"content", "done"}}};
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

std::string quoted(std::string_view before, std::string_view after) {
  return fmt::format("{}{}{}", before, kProbe, after);
}

// The text of a content: a text, or parts of which all are texts.
std::string text_of_content(const OrderedJson& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  if (!content.is_array()) return out;
  for (const OrderedJson& part : content) {
    const auto text = part.is_object() ? part.find("text") : part.end();
    if (text != part.end() && text->is_string()) out += text->get<std::string>();
  }
  return out;
}

OrderedJson arguments_of(const OrderedJson& call, const std::string& path) {
  const auto given = call.find("arguments");
  if (given == call.end() || given->is_null()) return OrderedJson::object();
  if (given->is_object()) return *given;
  if (!given->is_string()) refuse_call("{}.arguments: expected JSON in a text", path);
  const auto& text = given->get_ref<const std::string&>();
  if (text.find_first_not_of(" \n\r\t") == std::string::npos) return OrderedJson::object();
  OrderedJson parsed = json_or_discarded(text);
  if (!parsed.is_object()) {
    refuse_call("{}.arguments: expected an object written as JSON, got {}", path,
                text.substr(0, 100));
  }
  return parsed;
}

// What some templates demand of ids: nine letters or digits. The same id gives the same again.
std::string nine_of(const std::string& id) {
  const auto is_fine = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (id.size() == 9 && std::all_of(id.begin(), id.end(), is_fine)) return id;
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  std::string out;
  for (int i = 0; i < 9; ++i, hash /= kDigits.size()) out += kDigits[hash % kDigits.size()];
  return out;
}

class Shown {
 public:
  Shown(const OrderedJson& messages,
        const ToolPrompt& prompt,
        const TemplateFacts& facts,
        const ToolDialect* dialect)
      : messages_(messages), prompt_(prompt), facts_(facts), dialect_(dialect) {}

  ShownChat make() {
    ShownChat out{.messages = OrderedJson::array()};
    for (size_t i = 0; i < messages_.size(); ++i) add(messages_[i], i, out.messages);
    if (facts_.needs_reasoning) {
      for (OrderedJson& message : out.messages) {
        if (message.value("role", "") == "assistant") add_no_reasoning(message);
      }
    }
    if (prompt_.tools == nullptr) return out;
    if (facts_.shows_tools) {
      out.tools = prompt_.tools;
      if (prompt_.tool_prompt != nullptr) add_to_last(*prompt_.tool_prompt, out.messages);
    } else {
      add_to_last(instructions(), out.messages);
    }
    return out;
  }

 private:
  void add(const OrderedJson& from, size_t index, OrderedJson& to) {
    const std::string role = from.value("role", "");
    if (role == "tool") return add_result(from, to);
    const auto calls = from.find("tool_calls");
    if (calls == from.end() || !calls->is_array() || calls->empty()) {
      // In text, what the tools said may be followed by what the user says: one turn of theirs.
      if (!facts_.shows_calls && role == "user" && last_is_result_) return append_user(from, to);
      last_is_result_ = false;
      OrderedJson message = from;
      if (calls != from.end()) message.erase("tool_calls");
      to.push_back(std::move(message));
      return;
    }
    last_is_result_ = false;
    add_calls(from, *calls, fmt::format("messages[{}].tool_calls", index), to);
  }

  void add_calls(const OrderedJson& from,
                 const OrderedJson& calls,
                 const std::string& path,
                 OrderedJson& to) {
    OrderedJson message = from;
    std::vector<PastCall> past;
    OrderedJson shown = OrderedJson::array();
    for (size_t i = 0; i < calls.size(); ++i) {
      const std::string place = fmt::format("{}[{}].function", path, i);
      const auto function = calls[i].is_object() ? calls[i].find("function") : calls[i].end();
      if (!calls[i].is_object() || function == calls[i].end() || !function->is_object() ||
          !function->contains("name") || !(*function)["name"].is_string()) {
        refuse_call("{}: expected an object with the name of a tool", place);
      }
      const std::string name = (*function)["name"].get<std::string>();
      OrderedJson arguments = arguments_of(*function, place);
      past.push_back({.name = name, .arguments = arguments});
      if (calls[i].contains("id") && calls[i]["id"].is_string()) {
        names_[calls[i]["id"].get<std::string>()] = name;
      }
      OrderedJson call = calls[i];
      call["type"] = "function";
      if (call.contains("id") && call["id"].is_string()) call["id"] = shown_id(call["id"]);
      call["function"]["arguments"] =
          facts_.takes_text_arguments ? OrderedJson(arguments.dump()) : std::move(arguments);
      shown.push_back(std::move(call));
    }
    if (!message.contains("content") || message["content"].is_null()) message["content"] = "";
    if (facts_.shows_calls) {
      if (facts_.takes_null_content && message["content"] == OrderedJson("")) {
        message["content"] = nullptr;
      }
      message["tool_calls"] = std::move(shown);
    } else {
      message.erase("tool_calls");
      std::string text = text_of_content(message["content"]);
      if (!text.empty()) text += '\n';
      message["content"] = text + write_calls(syntax(), past);
    }
    to.push_back(std::move(message));
  }

  const CallSyntax& syntax() const {
    return dialect_ == nullptr ? generic_tool_dialect().syntax : dialect_->syntax;
  }

  OrderedJson shown_id(const OrderedJson& id) const {
    if (dialect_ == nullptr || dialect_->ids != CallIds::kNine) return id;
    return nine_of(id.get<std::string>());
  }

  // Clients give the call's id alone, some templates show the tool's name.
  std::string name_of_result(const OrderedJson& from) const {
    if (from.contains("name") && from["name"].is_string()) return from["name"].get<std::string>();
    if (!from.contains("tool_call_id") || !from["tool_call_id"].is_string()) return "";
    const auto known = names_.find(from["tool_call_id"].get<std::string>());
    return known == names_.end() ? "" : known->second;
  }

  void add_result(const OrderedJson& from, OrderedJson& to) {
    const std::string name = name_of_result(from);
    const std::string text =
        from.contains("content") ? text_of_content(from["content"]) : std::string();
    if (facts_.shows_calls) {
      OrderedJson message = from;
      message["content"] = text;
      if (!name.empty()) message["name"] = name;
      if (message.contains("tool_call_id") && message["tool_call_id"].is_string()) {
        message["tool_call_id"] = shown_id(message["tool_call_id"]);
      }
      to.push_back(std::move(message));
      return;
    }
    append_user({{"role", "user"},
                 {"content", name.empty() ? fmt::format("Result of the call: {}", text)
                                          : fmt::format("Result of {}: {}", name, text)}},
                to);
    last_is_result_ = true;
  }

  void append_user(const OrderedJson& message, OrderedJson& to) const {
    if (last_is_result_) {
      to.back()["content"] = text_of_content(to.back()["content"]) + "\n" +
                             text_of_content(message.value("content", OrderedJson("")));
    } else {
      to.push_back(message);
    }
  }

  static void add_to_last(const std::string& text, OrderedJson& messages) {
    OrderedJson& message = messages.back();
    if (!message.contains("content") || message["content"].is_null()) message["content"] = "";
    OrderedJson& content = message["content"];
    if (content.is_array()) {
      content.push_back({{"type", "text"}, {"text", "\n" + text}});
    } else {
      content = text_of_content(content) + "\n" + text;
    }
  }

  // For templates that know nothing of tools.
  std::string instructions() const {
    std::string out = "---\n" + prompt_.tools->dump() + "\n";
    if (prompt_.tool_prompt != nullptr) return out + *prompt_.tool_prompt;
    const std::string_view form =
        "a JSON object {\"name\": the function's name, \"arguments\": {the names of its parameters "
        "and their values}} and nothing else";
    if (prompt_.must_call) {
      return out + fmt::format("Call one of these functions. Answer with {}.", form);
    }
    return out + fmt::format(
                     "These functions can be called. When one is needed, answer with {}. When none "
                     "is needed, answer in words.",
                     form);
  }

  const OrderedJson& messages_;
  const ToolPrompt& prompt_;
  const TemplateFacts& facts_;
  const ToolDialect* const dialect_;
  std::map<std::string, std::string> names_;  // of the tools called, by the call's id
  bool last_is_result_ = false;               // the last message holds results of tools as text
};

}  // namespace

OrderedJson described(const OrderedJson& tools) {
  OrderedJson out = tools;
  for (OrderedJson& tool : out) {
    OrderedJson& properties = tool["function"]["parameters"]["properties"];
    if (!properties.is_object()) continue;
    for (OrderedJson& property : properties) {
      if (property.is_object() && !property.contains("description")) property["description"] = "";
    }
  }
  return out;
}

TemplateFacts template_facts(const ChatTemplate& chat_template) {
  TemplateFacts out;
  out.shows_tools = chat_template.mentions("tools", /*has_tools=*/true);
  out.needs_reasoning = is_rendered_with_reasoning_alone(chat_template);
  const OrderedJson arguments = {{kProbe, "a \"b\""}};
  for (const OrderedJson& content : {OrderedJson(""), OrderedJson(nullptr)}) {
    // The tools' own schema shows the name as well.
    const auto shown_with = [&](const OrderedJson& written) {
      return render_probe(chat_template, conversation_with_call(content, written),
                          out.needs_reasoning);
    };
    const std::string without = shown_with(OrderedJson::object());
    const auto adds = [&](const std::string& shown, const std::string& text) {
      return count(shown, text) > count(without, text);
    };
    const std::string by_object = shown_with(arguments);
    const std::string by_text = shown_with(arguments.dump());
    // Neither in Python's quotes nor escaped for HTML; a text not written as a text once more.
    const bool object_fine = adds(by_object, std::string(kProbe)) &&
                             !adds(by_object, quoted("'", "'")) &&
                             !adds(by_object, quoted("&#34;", "&#34;"));
    const bool text_fine =
        adds(by_text, std::string(kProbe)) && !adds(by_text, quoted("\\\"", "\\\""));
    if (!object_fine && !text_fine) continue;
    out.shows_calls = true;
    out.takes_text_arguments = !object_fine;
    out.takes_null_content = content.is_null();
    break;
  }
  return out;
}

ShownChat shown_chat(const OrderedJson& messages,
                     const ToolPrompt& prompt,
                     const TemplateFacts& facts,
                     const ToolDialect* dialect) {
  return Shown(messages, prompt, facts, dialect).make();
}

}  // namespace tgi::dialect
