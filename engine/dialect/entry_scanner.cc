#include "engine/dialect/entry_scanner.h"

#include <optional>

#include "base/bounded_json.h"
#include "base/json_text.h"
#include "base/nlohmann_json.h"
#include "engine/dialect/json_scanner.h"
#include "engine/dialect/marked_text.h"
#include "engine/dialect/tools.h"

namespace tgi::dialect {
namespace {

constexpr int kMaxEntryDepth = 64;

class EntryReader {
 public:
  EntryReader(std::string_view text, std::string_view quote) : text_(text), quote_(quote) {}

  std::string whole() {
    std::string out;
    if (!value(out, 0)) return "";
    skip_space();
    return text_.empty() ? out : "";
  }

 private:
  void skip_space() {
    while (!text_.empty() && is_json_space(text_.front())) text_.remove_prefix(1);
  }
  bool take(char c) {
    skip_space();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool value(std::string& out, int depth) {
    skip_space();
    if (depth > kMaxEntryDepth) return false;
    if (const auto text = quoted()) {
      JsonText(out).string(*text);
      return true;
    }
    if (take('{')) return members('}', /*named=*/true, out, depth);
    if (take('[')) return members(']', /*named=*/false, out, depth);
    return word(out);
  }

  // A text between marks, or a string of JSON.
  std::optional<std::string> quoted() {
    if (text_.starts_with(quote_)) {
      const size_t end = text_.find(quote_, quote_.size());
      if (end == std::string_view::npos) return std::nullopt;
      std::string out = unmarked(text_.substr(quote_.size(), end - quote_.size()));
      text_.remove_prefix(end + quote_.size());
      return out;
    }
    if (!text_.starts_with('"')) return std::nullopt;
    JsonScanner scanner;
    const size_t length = scanner.feed(text_);
    const OrderedJson json = json_or_discarded(unmarked(text_.substr(0, length)));
    if (!json.is_string()) return std::nullopt;
    text_.remove_prefix(length);
    return json.get<std::string>();
  }

  bool members(char close, bool named, std::string& out, int depth) {
    out += named ? '{' : '[';
    for (bool is_first = true; !take(close); is_first = false) {
      if (!is_first && !take(',')) return false;
      if (!is_first && take(close)) break;  // a comma behind the last
      if (!is_first) out += ", ";
      if (named && !name(out)) return false;
      if (!value(out, depth + 1)) return false;
    }
    out += close;
    return true;
  }

  bool name(std::string& out) {
    skip_space();
    std::optional<std::string> found = quoted();
    if (!found) {
      const size_t end = text_.find_first_of(":,{}[]");
      if (end == std::string_view::npos || end == 0) return false;
      found = unmarked(text_.substr(0, end));
      while (!found->empty() && is_json_space(found->back())) found->pop_back();
      text_.remove_prefix(end);
    }
    if (!take(':')) return false;
    JsonText(out).string(*found);
    out += ": ";
    return true;
  }

  // A number, or a word of JSON or Python.
  bool word(std::string& out) {
    const size_t end = std::min(text_.find_first_of(",]}"), text_.size());
    std::string_view found = text_.substr(0, end);
    while (!found.empty() && is_json_space(found.back())) found.remove_suffix(1);
    text_.remove_prefix(end);
    const std::string json = found == "None"    ? "null"
                             : found == "True"  ? "true"
                             : found == "False" ? "false"
                                                : std::string(found);
    const OrderedJson parsed = json_or_discarded(json);
    if (!parsed.is_number() && !parsed.is_boolean() && !parsed.is_null()) return false;
    out += json;
    return true;
  }

  std::string_view text_;
  const std::string_view quote_;
};

}  // namespace

size_t EntryScanner::feed(std::string_view text, std::string_view quote) {
  size_t at = 0;
  while (at < text.size() && !is_done_) {
    const std::string_view rest = text.substr(at);
    if (!in_json_) {
      if (rest.starts_with(quote)) {
        in_text_ = !in_text_;
        at += quote.size();
        continue;
      }
      if (quote.starts_with(rest)) return at;
    }
    const char c = text[at];
    if (in_json_) {
      if (c == '"' && !is_escaped_) in_json_ = false;
      is_escaped_ = c == '\\' && !is_escaped_;
    } else if (!in_text_) {
      if (c == '"') in_json_ = true;
      if (c == '{' || c == '[') ++depth_;
      const bool closes = c == '}' || c == ']';
      if (depth_ == 0 && (closes || c == ',')) {
        is_done_ = true;
        return at;
      }
      if (closes) --depth_;
    }
    ++at;
  }
  return at;
}

std::string json_of_entry(std::string_view value, std::string_view quote) {
  return EntryReader(value, quote).whole();
}

}  // namespace tgi::dialect
