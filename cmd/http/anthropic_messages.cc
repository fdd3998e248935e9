// Turns of content blocks as messages for a chat template.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "cmd/http/anthropic_body.h"

namespace tgi::http {
namespace {

// Members of blocks that say nothing to a model.
constexpr std::array kBlockExtras = {
    ExtraField{"cache_control", kAnything, "every prompt is looked up in the cache"},
    ExtraField{"citations", kAnything, "where a text came from; models read the text"},
    ExtraField{"caller", R"([{"type":"direct"}])", "calls are made by the model alone"},
    ExtraField{"toolset_name", "[]", "there are no toolsets"},
    ExtraField{"signature", kAnything, "thinking is read whoever wrote it"},
    ExtraField{"parsed_output", kAnything, "what a client read from the text"},
};

const OrderedJson* block_member(const OrderedJson& block, const char* name) {
  const auto it = block.find(name);
  return it == block.end() || it->is_null() ? nullptr : &*it;
}

std::string block_text(const OrderedJson& block, const char* name, const std::string& path) {
  const OrderedJson* const found = block_member(block, name);
  const std::string where = path + "." + name;
  if (found == nullptr) fail_body(where, "missing field");
  std::string out;
  read_body_value(*found, where, out);
  return out;
}

void check_block(const OrderedJson& block,
                 const std::string& path,
                 std::initializer_list<std::string_view> known) {
  for (const auto& each : block.items()) {
    if (std::find(known.begin(), known.end(), each.key()) != known.end()) continue;
    check_extra_field(path + "." + each.key(), each.key(), each.value(), kBlockExtras,
                      {known.begin(), known.size()});
  }
}

[[noreturn]] void refuse_block(const std::string& type,
                               const std::string& path,
                               std::string_view expected) {
  throw ApiError(422, "validation",
                 fmt::format("Input validation error: `{}`: blocks of type {} are not supported "
                             "here, expected {}",
                             path, type.substr(0, 100), expected),
                 "unsupported_feature", path + ".type");
}

std::string type_of_block(const OrderedJson& block, const std::string& path) {
  if (!block.is_object()) fail_body_type(path, "an object with a type", block);
  return block_text(block, "type", path);
}

// Blocks are paragraphs.
void add_paragraph(std::string& to, const std::string& text) {
  if (!to.empty() && !text.empty()) to += '\n';
  to += text;
}

// A text, or text blocks and nothing else.
std::string text_of_blocks(const OrderedJson& content, const std::string& path) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) fail_body_type(path, "a string or an array of blocks", content);
  std::string out;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const std::string type = type_of_block(content[i], at);
    if (type != "text") refuse_block(type, at, "text");
    check_block(content[i], at, {"type", "text"});
    add_paragraph(out, block_text(content[i], "text", at));
  }
  return out;
}

// The text of a document that is given as text; those of files and addresses are refused.
std::string text_of_source(const OrderedJson& document, const std::string& path) {
  const OrderedJson* const source = block_member(document, "source");
  const std::string at = path + ".source";
  if (source == nullptr) fail_body(at, "missing field");
  const std::string type = type_of_block(*source, at);
  if (type == "text") {
    check_block(*source, at, {"type", "media_type", "data"});
    const OrderedJson* const media_type = block_member(*source, "media_type");
    if (media_type != nullptr && *media_type != OrderedJson("text/plain")) {
      fail_body(at + ".media_type", "expected text/plain");
    }
    return block_text(*source, "data", at);
  }
  if (type == "content") {
    check_block(*source, at, {"type", "content"});
    const OrderedJson* const content = block_member(*source, "content");
    if (content == nullptr) fail_body(at + ".content", "missing field");
    return text_of_blocks(*content, at + ".content");
  }
  throw ApiError(422, "validation",
                 fmt::format("Input validation error: `{}`: documents of type {} are not supported "
                             "here, expected text (text/plain) or content: give the document as "
                             "text",
                             at, type.substr(0, 100)),
                 "unsupported_feature", at + ".type");
}

// A document as a model reads it, with marks that tell it from what is said about it.
std::string text_of_document(const OrderedJson& block, const std::string& path) {
  check_block(block, path, {"type", "source", "title", "context"});
  const OrderedJson* const citations = block_member(block, "citations");
  if (citations != nullptr && citations->is_object() &&
      citations->value("enabled", OrderedJson(false)) == OrderedJson(true)) {
    throw ApiError(422, "validation",
                   fmt::format("Input validation error: `{}.citations` is not supported: answers "
                               "don't say where they come from; leave it out",
                               path),
                   "unsupported_feature", path + ".citations");
  }
  std::string out = "<document>\n";
  for (const char* const name : {"title", "context"}) {
    if (block_member(block, name) == nullptr) continue;
    out += fmt::format("<{}>{}</{}>\n", name, block_text(block, name, path), name);
  }
  return out + fmt::format("<content>\n{}\n</content>\n</document>", text_of_source(block, path));
}

// What a tool returned: a text, or blocks of texts and documents.
std::string text_of_result(const OrderedJson& content, const std::string& path) {
  if (!content.is_array()) return text_of_blocks(content, path);
  std::string out;
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    const std::string type = type_of_block(content[i], at);
    if (type == "document") {
      add_paragraph(out, text_of_document(content[i], at));
    } else {
      if (type != "text") refuse_block(type, at, "text or document");
      check_block(content[i], at, {"type", "text"});
      add_paragraph(out, block_text(content[i], "text", at));
    }
  }
  return out;
}

class TurnWriter {
 public:
  explicit TurnWriter(const std::optional<OrderedJson>& system) {
    if (!system) return;
    const std::string text = text_of_blocks(*system, "system");
    if (!text.empty()) messages_.push_back({{"role", "system"}, {"content", text}});
  }

  void add(const OrderedJson& message, const std::string& path) {
    if (!message.is_object()) fail_body_type(path, "an object with role and content", message);
    const std::string role = block_text(message, "role", path);
    const OrderedJson* const content = block_member(message, "content");
    if (content == nullptr) fail_body(path + ".content", "missing field");
    check_block(message, path, {"role", "content"});
    const std::string at = path + ".content";
    if (role == "user") return add_user(*content, at);
    if (role == "assistant") return add_assistant(*content, at);
    if (role != "system") {
      fail_body(path + ".role", fmt::format("unknown role `{}`, expected user, assistant or system",
                                            role.substr(0, 100)));
    }
    add_system(text_of_blocks(*content, at));
  }

  OrderedJson take() { return std::move(messages_); }

 private:
  // The last message, when it is one of that role; else a new one.
  OrderedJson& turn(const char* role) {
    if (messages_.empty() || messages_.back()["role"] != role) {
      messages_.push_back({{"role", role}, {"content", ""}});
    }
    return messages_.back();
  }

  // Before the first answer it belongs to the prompt: many templates take none in another place.
  void add_system(const std::string& text) {
    const bool is_answered = std::any_of(messages_.begin(), messages_.end(), [](const auto& each) {
      return each["role"] == "assistant" || each["role"] == "tool";
    });
    const bool has_prompt = !messages_.empty() && messages_.front()["role"] == "system";
    if (!is_answered && has_prompt) {
      OrderedJson& prompt = messages_.front()["content"];
      std::string whole = prompt.get<std::string>();
      add_paragraph(whole, text);
      prompt = std::move(whole);
      return;
    }
    messages_.insert(is_answered ? messages_.end() : messages_.begin(),
                     OrderedJson{{"role", "system"}, {"content", text}});
  }

  void add_user(const OrderedJson& content, const std::string& path) {
    if (content.is_string()) return add_text("user", content.get<std::string>());
    for_each_block(content, path, [&](const OrderedJson& block, const std::string& at) {
      const std::string type = type_of_block(block, at);
      if (type == "text") {
        check_block(block, at, {"type", "text"});
        add_text("user", block_text(block, "text", at));
      } else if (type == "document") {
        add_text("user", text_of_document(block, at));
      } else if (type == "tool_result") {
        add_result(block, at);
      } else {
        refuse_block(type, at, "text, document or tool_result");
      }
    });
  }

  void add_assistant(const OrderedJson& content, const std::string& path) {
    if (content.is_string()) return add_text("assistant", content.get<std::string>());
    (void)turn("assistant");
    for_each_block(content, path, [&](const OrderedJson& block, const std::string& at) {
      const std::string type = type_of_block(block, at);
      if (type == "text") {
        check_block(block, at, {"type", "text"});
        add_text("assistant", block_text(block, "text", at));
      } else if (type == "thinking") {
        check_block(block, at, {"type", "thinking"});
        add_thinking(block_text(block, "thinking", at));
      } else if (type == "tool_use") {
        add_call(block, at);
      } else {
        refuse_block(type, at, "text, thinking or tool_use");
      }
    });
  }

  template <typename Add>
  static void for_each_block(const OrderedJson& content, const std::string& path, Add add) {
    if (!content.is_array()) fail_body_type(path, "a string or an array of blocks", content);
    for (size_t i = 0; i < content.size(); ++i) add(content[i], fmt::format("{}[{}]", path, i));
  }

  void add_text(const char* role, const std::string& text) {
    OrderedJson& content = turn(role)["content"];
    std::string whole = content.get<std::string>();
    add_paragraph(whole, text);
    content = std::move(whole);
  }

  void add_thinking(const std::string& text) {
    if (text.empty()) return;
    OrderedJson& message = turn("assistant");
    std::string whole = message.value("reasoning_content", "");
    add_paragraph(whole, text);
    message["reasoning_content"] = std::move(whole);
  }

  void add_call(const OrderedJson& block, const std::string& path) {
    check_block(block, path, {"type", "id", "name", "input"});
    const std::string id = block_text(block, "id", path);
    const OrderedJson* const input = block_member(block, "input");
    if (input == nullptr) fail_body(path + ".input", "missing field");
    if (!input->is_object()) fail_body_type(path + ".input", "an object", *input);
    call_ids_.insert(id);
    turn("assistant")["tool_calls"].push_back(
        {{"id", id},
         {"type", "function"},
         {"function",
          {{"name", block_text(block, "name", path)}, {"arguments", dump_json(*input)}}}});
  }

  void add_result(const OrderedJson& block, const std::string& path) {
    check_block(block, path, {"type", "tool_use_id", "content", "is_error"});
    const std::string id = block_text(block, "tool_use_id", path);
    if (!call_ids_.contains(id)) {
      throw ApiError(422, "validation",
                     fmt::format("{}: unexpected `tool_use_id` found in a `tool_result` block: {}. "
                                 "Each has to have its `tool_use` block in a message before it.",
                                 path, id.substr(0, 100)),
                     "", path + ".tool_use_id");
    }
    const OrderedJson* const content = block_member(block, "content");
    std::string text = content == nullptr ? "" : text_of_result(*content, path + ".content");
    bool is_error = false;
    if (const OrderedJson* const flag = block_member(block, "is_error")) {
      read_body_value(*flag, path + ".is_error", is_error);
    }
    // Templates have no other way to tell it.
    if (is_error) text = text.empty() ? "Error" : "Error: " + text;
    messages_.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(text)}});
  }

  OrderedJson messages_ = OrderedJson::array();
  std::unordered_set<std::string> call_ids_;
};

}  // namespace

OrderedJson messages_of_blocks(const std::optional<OrderedJson>& system,
                               const OrderedJson& messages) {
  if (!messages.is_array()) fail_body_type("messages", "an array", messages);
  require(!messages.empty(), "`messages` cannot be empty");
  TurnWriter writer(system);
  for (size_t i = 0; i < messages.size(); ++i)
    writer.add(messages[i], fmt::format("messages[{}]", i));
  OrderedJson out = writer.take();
  require(!out.empty(), "`messages`: expected at least one block of content");
  return out;
}

}  // namespace tgi::http
