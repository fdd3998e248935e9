// The codec of the one line that is written and read once per token, without a tree of JSON values
// in between. It says the same as the field tables do: what does not look like such a line is left
// to them.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "base/utf8.h"
#include "ipc/field_table.h"

namespace tgi::ipc {
namespace {

void require_utf8(std::string_view text, std::string_view what) {
  if (is_valid_utf8(text)) return;
  throw Error(Code::kInternal, fmt::format("{} is not valid UTF-8", what));
}

void write_tool_calls(const std::vector<ToolCall>& calls, JsonText& out) {
  out.raw(",\"tool_calls\":");
  std::string_view open = "[{\"index\":";
  for (const ToolCall& call : calls) {
    require_utf8(call.id + call.name + call.arguments, "a tool call");
    out.raw(open).number(call.index);
    if (!call.id.empty()) out.raw(",\"id\":").string(call.id);
    if (!call.name.empty()) out.raw(",\"name\":").string(call.name);
    out.raw(",\"arguments\":").string(call.arguments).raw("}");
    open = ",{\"index\":";
  }
  out.raw("]");
}

void write_token(const TokenInfo& token, JsonText& out) {
  require_utf8(token.text, "a token's text");
  out.raw("{\"id\":").number(token.id).raw(",\"text\":").string(token.text);
  if (token.logprob) out.raw(",\"logprob\":").number(*token.logprob);
  out.raw(",\"special\":").boolean(token.special);
  if (token.skipped) out.raw(",\"skipped\":true");
  if (!token.bytes.empty()) out.raw(fmt::format(",\"bytes\":[{}]", fmt::join(token.bytes, ",")));
  out.raw("}");
}

// Fills a TokenEvent from the events of nlohmann's parser. Any handler that returns false ends it:
// the line is then read the slow way, which knows every rule and every error.
class TokenEventReader {
 public:
  using Json = OrderedJson;

  explicit TokenEventReader(TokenEvent& event) : event_(event) {}

  bool is_complete() const { return has_token_ && has_text_; }

  bool null() { return false; }
  bool boolean(bool value) {
    if (token_ == nullptr) return false;
    if (key_ != "special" && key_ != "skipped") return false;
    (key_ == "special" ? token_->special : token_->skipped) = value;
    return true;
  }
  bool number_integer(Json::number_integer_t value) {
    if (token_ != nullptr && key_ == "logprob") return number_float(static_cast<double>(value), "");
    return false;  // ids and indices are not negative
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (token_ != nullptr && key_ == "logprob") return number_float(static_cast<double>(value), "");
    if (token_ != nullptr && key_ == "id" && std::in_range<int32_t>(value)) {
      token_->id = static_cast<int32_t>(value);
      token_has_id_ = true;
      return true;
    }
    if (token_ == nullptr && key_ == "index" && std::in_range<int64_t>(value)) {
      event_.index = static_cast<int64_t>(value);
      return true;
    }
    return false;
  }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) {
    if (token_ == nullptr || key_ != "logprob") return false;
    token_->logprob = value;
    return true;
  }
  bool string(std::string& value) {
    if (key_ == "reasoning" && token_ == nullptr && !in_list_) {
      event_.reasoning = std::move(value);
      return true;
    }
    if (key_ != "text") return false;  // finish_reason: once per sequence, the tables know it
    if (token_ != nullptr) {
      token_->text = std::move(value);
      token_has_text_ = true;
    } else {
      if (in_list_) return false;  // between the objects of the list
      event_.text = std::move(value);
      has_text_ = true;
    }
    return true;
  }
  bool binary(Json::binary_t& /*value*/) { return false; }

  bool start_object(size_t /*size*/) {
    ++depth_;
    token_has_id_ = token_has_text_ = false;
    if (depth_ == 1) return true;
    if (depth_ == 2 && !in_list_ && key_ == "token") {
      token_ = &event_.token;
      has_token_ = true;
      return true;
    }
    if (depth_ == 2 && in_list_) {
      token_ = &event_.top_tokens.emplace_back();
      return true;
    }
    return false;
  }
  bool end_object() {
    --depth_;
    const bool is_whole = token_ == nullptr || (token_has_id_ && token_has_text_);
    token_ = nullptr;
    return is_whole;
  }
  bool start_array(size_t /*size*/) {
    if (depth_ != 1 || in_list_ || key_ != "top_tokens") return false;
    in_list_ = true;
    return true;
  }
  bool end_array() {
    in_list_ = false;
    return true;
  }
  bool key(std::string& value) {
    key_.swap(value);
    return true;
  }
  bool parse_error(size_t /*byte*/,
                   const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) {
    return false;
  }

 private:
  TokenEvent& event_;
  TokenInfo* token_ = nullptr;  // that the members belong to; null: to the event
  std::string key_;
  int depth_ = 0;
  bool in_list_ = false;
  bool has_token_ = false;
  bool has_text_ = false;
  bool token_has_id_ = false;
  bool token_has_text_ = false;
};

}  // namespace

std::string encode_token_event(const TokenEvent& event) {
  require_utf8(event.text, "released text");
  std::string line;
  line.reserve(128);
  JsonText out(line);
  out.raw("{\"index\":").number(event.index).raw(",\"token\":");
  write_token(event.token, out);
  out.raw(",\"text\":").string(event.text);
  if (!event.reasoning.empty()) {
    require_utf8(event.reasoning, "released reasoning");
    out.raw(",\"reasoning\":").string(event.reasoning);
  }
  if (!event.tool_calls.empty()) {
    write_tool_calls(event.tool_calls, out);
  }
  if (!event.top_tokens.empty()) {
    out.raw(",\"top_tokens\":");
    char open = '[';
    for (const TokenInfo& token : event.top_tokens) {
      out.raw({&open, 1});
      write_token(token, out);
      open = ',';
    }
    out.raw("]");
  }
  if (event.finish_reason) {
    out.raw(",\"finish_reason\":").string(finish_reason_name(*event.finish_reason));
  }
  out.raw("}");
  return line;
}

std::optional<TokenEvent> try_decode_token_event(std::string_view line) {
  if (!line.starts_with("{\"index\":")) return std::nullopt;
  TokenEvent event;
  TokenEventReader reader(event);
  if (!OrderedJson::sax_parse(line, &reader) || !reader.is_complete()) return std::nullopt;
  return event;
}

}  // namespace tgi::ipc
