#include "cmd/conversation.h"

#include "base/bounded_json.h"
#include "base/error.h"
#include "cmd/output.h"

namespace tgi {

using ipc::OrderedJson;

std::optional<std::string> Conversation::system() const {
  if (messages_.empty() || messages_[0].value("role", "") != "system") return std::nullopt;
  const OrderedJson& content = messages_[0]["content"];
  return content.is_string() ? content.get<std::string>() : content.dump();
}

void Conversation::set_system(const std::string& text) {
  if (system()) messages_.erase(0);
  if (text.empty()) return;
  const OrderedJson message = {{"role", "system"}, {"content", text}};
  messages_.insert(messages_.begin(), message);
}

void Conversation::add(const std::string& role, const std::string& content) {
  messages_.push_back({{"role", role}, {"content", content}});
}

bool Conversation::ends_with(const std::string& role) const {
  return !messages_.empty() && messages_.back().value("role", "") == role;
}

void Conversation::drop_last() {
  messages_.erase(messages_.size() - 1);
}

void Conversation::cut(size_t size) {
  while (messages_.size() > size) drop_last();
}

void Conversation::cut_last(const std::string& role) {
  for (size_t i = size(); i-- > 0;) {
    if (messages_[i].value("role", "") == role) return cut(i);
  }
}

bool Conversation::drop_oldest_turn() {
  const size_t begin = system() ? 1 : 0;
  size_t end = begin + 1;
  while (end < size() && messages_[end].value("role", "") != "user") ++end;
  if (end >= size()) return false;
  for (size_t i = begin; i < end; ++i) messages_.erase(begin);
  return true;
}

void Conversation::clear() {
  const std::string kept = system().value_or("");
  messages_ = OrderedJson::array();
  set_system(kept);
}

void Conversation::save(const std::string& path) const {
  const OrderedJson document = {{"messages", messages_}};
  write_file(path, document.dump(2) + "\n");
}

void Conversation::load(const std::string& path) {
  const std::string text = read_document(path);
  OrderedJson document = json_or_discarded(text);
  if (document.is_discarded()) {
    throw Error(Code::kInvalidArgument, path + ": not valid JSON, or nested too deeply");
  }
  if (document.is_object() && document.contains("messages")) {
    document = OrderedJson(document["messages"]);
  }
  try {
    ipc::generate_request_from_json({{"messages", document}});
  } catch (const Error& error) {
    throw Error(error.in(path));
  }
  messages_ = std::move(document);
}

}  // namespace tgi
