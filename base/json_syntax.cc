#include "base/json_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/nlohmann_json.h"
#include "base/utf8.h"

namespace tgi {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxQuoted = 32;  // bytes of the user's text in a message

// Takes every value and keeps the first mistake.
class Locator final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return true; }
  bool key(string_t& /*value*/) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position,
                   const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    message_ = error.what();
    return false;
  }

  size_t position_ = 0;
  std::string message_;
};

// Lines and columns count from 1, columns in characters.
std::string place(std::string_view text, size_t position) {
  const size_t offset = std::min(position == 0 ? 0 : position - 1, text.size());
  const std::string_view before = text.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  return fmt::format("line {}, column {}", std::ranges::count(before, '\n') + 1,
                     count_utf8_characters(before.substr(line_start)) + 1);
}

// The part of `text` behind the first `mark`.
std::optional<std::string_view> behind(std::string_view text, std::string_view mark) {
  const size_t found = text.find(mark);
  if (found == std::string_view::npos) return std::nullopt;
  return text.substr(found + mark.size());
}

// The library's names of tokens, and ours.
struct TokenName {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array<TokenName, 3> kTokenNames = {{
    {"'[', '{', or a literal", "a value"},
    {"string literal", "string"},
    {"number literal", "number"},
}};

std::string with_our_names(std::string text) {
  for (const TokenName& name : kTokenNames) {
    for (size_t at = text.find(name.theirs); at != std::string::npos; at = text.find(name.theirs)) {
      text.replace(at, name.theirs.size(), name.ours);
    }
  }
  return text;
}

// "invalid literal; last read: 'nul,'; expected end of input": the last of what was read, where it
// can be shown.
std::string shorten_quote(std::string_view reason) {
  static constexpr std::string_view kMark = "; last read: '";
  const size_t found = reason.find(kMark);
  if (found == std::string_view::npos) return with_our_names(std::string(reason));
  std::string_view quoted = reason.substr(found + kMark.size());
  const size_t end = std::min(quoted.rfind('\''), quoted.rfind("'; expected "));
  const std::string rest(end == std::string_view::npos ? "" : quoted.substr(end + 1));
  quoted = quoted.substr(0, end);
  const bool is_cut = quoted.size() > kMaxQuoted;
  if (is_cut) quoted.remove_prefix(quoted.size() - kMaxQuoted);
  while (!quoted.empty() && !starts_character(quoted.front())) quoted.remove_prefix(1);
  const std::string what = with_our_names(std::string(reason.substr(0, found)));
  if (!is_valid_utf8(quoted)) return what + with_our_names(rest);
  return fmt::format("{} near {}{}{}", what, is_cut ? "..." : "", quoted, with_our_names(rest));
}

std::string reason_of(std::string_view message) {
  if (const auto number = behind(message, "number overflow parsing ")) {
    return fmt::format("the number {} is too large; expected one that fits 64 bits",
                       number->substr(0, kMaxQuoted));
  }
  const auto syntax = behind(message, "syntax error ");
  if (!syntax) return "expected a JSON document";
  const std::string_view reason = behind(*syntax, "- ").value_or(*syntax);
  const auto context = behind(syntax->substr(0, syntax->size() - reason.size()), "while parsing ");
  std::string_view part = context.value_or("");
  if (part.ends_with(" - ")) part.remove_suffix(3);
  std::string out = shorten_quote(reason);
  if (part.empty()) return out;
  const std::string named = fmt::format("{} {}", part == "value" ? "a" : "an", part);
  const bool says_expected = out.find("; expected ") != std::string::npos;
  out += fmt::format("{} {}", says_expected ? ", reading" : "; expected", named);
  return out;
}

}  // namespace

Error json_syntax_error(std::string_view text, size_t position, std::string_view message) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return {Code::kInvalidArgument, "not valid JSON: expected a document, got no text"};
  }
  return {Code::kInvalidArgument,
          fmt::format("not valid JSON at {}: {}", place(text, position), reason_of(message))};
}

Error json_syntax_error(std::string_view text) {
  Locator locator;
  (void)Json::sax_parse(text.begin(), text.end(), &locator);
  // The library takes a zero byte for the end of the text.
  const size_t zero = text.find('\0');
  if (zero != std::string_view::npos && (locator.message_.empty() || locator.position_ > zero)) {
    return {Code::kInvalidArgument,
            fmt::format("not valid JSON at {}: a zero byte", place(text, zero + 1))};
  }
  return json_syntax_error(text, locator.position_, locator.message_);
}

}  // namespace tgi
