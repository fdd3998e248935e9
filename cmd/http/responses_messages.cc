// Items of /v1/responses as messages for a chat template.
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "cmd/http/responses_items.h"

namespace tgi::http {
namespace {

// A text where there is one part, as most templates want it.
OrderedJson chat_content(const OrderedJson& parts) {
  if (parts.is_string()) return parts;
  if (parts.size() == 1) return parts[0]["text"];
  OrderedJson out = OrderedJson::array();
  for (const OrderedJson& part : parts) {
    out.push_back({{"type", "text"}, {"text", part["text"]}});
  }
  return out;
}

std::string joined_text(const OrderedJson& parts) {
  std::string out;
  for (const OrderedJson& part : parts) out += part["text"].get_ref<const std::string&>();
  return out;
}

class MessageWriter {
 public:
  explicit MessageWriter(const std::optional<std::string>& instructions) {
    if (instructions && !instructions->empty()) add_system(*instructions);
  }

  void add(const OrderedJson& item) {
    const std::string& type = item["type"].get_ref<const std::string&>();
    if (type == "function_call") return add_call(item);
    if (type == "reasoning") return add_reasoning(item);
    if (type == "function_call_output") return add_output(item);
    add_message(item);
  }

  OrderedJson take() {
    close();
    return std::move(messages_);
  }

 private:
  void add_system(const std::string& text) {
    if (messages_.empty()) {
      messages_.push_back({{"role", "system"}, {"content", text}});
      return;
    }
    OrderedJson& content = messages_.back()["content"];
    content = content.get<std::string>() + "\n\n" + text;
  }

  void add_message(const OrderedJson& item) {
    const std::string& role = item["role"].get_ref<const std::string&>();
    if (role == "assistant") {
      if (has_spoken_) close();
      assistant_["content"] = joined_text(item["content"]);
      is_open_ = has_spoken_ = true;
      return;
    }
    close();
    const bool is_system = role != "user";
    const bool is_first =
        messages_.empty() || (messages_.size() == 1 && messages_[0]["role"] == "system");
    if (is_system && is_first) return add_system(joined_text(item["content"]));
    messages_.push_back(
        {{"role", is_system ? "system" : role}, {"content", chat_content(item["content"])}});
  }

  void add_call(const OrderedJson& item) {
    call_ids_.insert(item["call_id"].get<std::string>());
    OrderedJson name = item["name"];
    if (item.contains("namespace")) {
      name = shown_tool_name(item["namespace"].get<std::string>(), name.get<std::string>());
    }
    assistant_["tool_calls"].push_back(
        {{"id", item["call_id"]},
         {"type", "function"},
         {"function", {{"name", std::move(name)}, {"arguments", item["arguments"]}}}});
    is_open_ = has_spoken_ = true;
  }

  void add_reasoning(const OrderedJson& item) {
    if (has_spoken_) close();
    const OrderedJson& content = item["content"];
    std::string text = joined_text(content.empty() ? item["summary"] : content);
    if (text.empty()) return;
    if (assistant_.contains("reasoning_content")) {
      text = assistant_["reasoning_content"].get<std::string>() + text;
    }
    assistant_["reasoning_content"] = std::move(text);
    is_open_ = true;
  }

  void add_output(const OrderedJson& item) {
    close();
    const std::string& call_id = item["call_id"].get_ref<const std::string&>();
    if (!call_ids_.contains(call_id)) {
      throw ApiError(422, "validation",
                     fmt::format("No tool call found for function call output with call_id {}.",
                                 call_id.substr(0, 100)),
                     "", "input");
    }
    messages_.push_back(
        {{"role", "tool"}, {"tool_call_id", call_id}, {"content", chat_content(item["output"])}});
  }

  void close() {
    if (!is_open_) return;
    OrderedJson message = {{"role", "assistant"}, {"content", assistant_.value("content", "")}};
    for (const char* name : {"reasoning_content", "tool_calls"}) {
      if (assistant_.contains(name)) message[name] = std::move(assistant_[name]);
    }
    if (message.contains("tool_calls") && message["content"] == "") message["content"] = nullptr;
    messages_.push_back(std::move(message));
    assistant_ = OrderedJson::object();
    is_open_ = has_spoken_ = false;
  }

  OrderedJson messages_ = OrderedJson::array();
  OrderedJson assistant_ = OrderedJson::object();  // its message, as far as it has come
  bool is_open_ = false;
  bool has_spoken_ = false;  // it has more than reasoning
  std::unordered_set<std::string> call_ids_;
};

}  // namespace

OrderedJson messages_of_items(const std::optional<std::string>& instructions,
                              const OrderedJson& items) {
  MessageWriter writer(instructions);
  for (const OrderedJson& item : items) writer.add(item);
  return writer.take();
}

}  // namespace tgi::http
