#include "engine/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "engine/text/jinja/literals.h"
#include "engine/text/jinja/text.h"

namespace tgi::jinja {
namespace {

std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// Two-character operators before their first characters.
constexpr std::array<std::string_view, 26> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) lex_data();
    push(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool looking_at(std::string_view text) const { return rest().substr(0, text.size()) == text; }
  void push(TokenType type, std::string text) {
    tokens_.push_back({type, line_, std::move(text), Value()});
  }

  void advance(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + bytes),
                                         '\n'));
    at_ += bytes;
    line_starting_ = bytes > 0 ? source_[at_ - 1] == '\n' : line_starting_;
  }

  void skip_space() {
    size_t end = at_;
    while (end < source_.size()) {
      size_t next = end;
      if (!is_space(next_character(source_, next))) break;
      end = next;
    }
    advance(end - at_);
  }

  // Text up to the next tag, then the tag.
  void lex_data() {
    const size_t tag = find_tag(at_);
    const char sign = tag < source_.size() ? sign_at(tag + 2) : '\0';
    const bool is_variable = tag < source_.size() && source_[tag + 1] == '{';
    std::string_view data = std::string_view(source_).substr(at_, tag - at_);
    if (tag < source_.size()) data = strip_before_tag(data, sign, is_variable);
    if (!data.empty()) push(TokenType::kData, std::string(data));
    advance(tag - at_);
    if (tag == source_.size()) return;
    const char kind = source_[tag + 1];
    if (kind == '%' && lex_raw()) return;
    advance(sign == '\0' ? 2 : 3);
    if (kind == '#') {
      lex_comment();
    } else {
      push(kind == '%' ? TokenType::kBlockBegin : TokenType::kVariableBegin, "");
      lex_tag(kind == '%');
    }
  }

  size_t find_tag(size_t from) const {
    for (size_t at = source_.find('{', from); at != std::string::npos;
         at = source_.find('{', at + 1)) {
      if (at + 1 < source_.size() &&
          std::string_view("%{#").find(source_[at + 1]) != std::string_view::npos) {
        return at;
      }
    }
    return source_.size();
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  // lstrip_blocks: white space between the start of the line and a block or comment goes.
  std::string_view strip_before_tag(std::string_view data, char sign, bool is_variable) const {
    if (sign == '-') return strip(data, false, true);
    if (sign == '+' || is_variable) return data;
    const size_t newline = data.rfind('\n');
    if (newline == std::string_view::npos && !line_starting_) return data;
    const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    const bool blank = strip(data.substr(line_start), false, true).empty();
    return blank ? data.substr(0, line_start) : data;
  }

  // `{% raw %} ... {% endraw %}`: what is between is text. False, and nothing read, for other tags.
  bool lex_raw() {
    size_t end = match_keyword(at_ + 2 + (sign_at(at_ + 2) != '\0' ? 1 : 0), "raw");
    if (end == 0) return false;
    const int line = line_;
    if (std::string_view(source_).substr(end, 3) == "-%}") {
      advance(end + 3 - at_);
      skip_space();
    } else if (std::string_view(source_).substr(end, 2) == "%}") {
      advance(end + 2 - at_);
    } else {
      return false;
    }
    for (size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      end = match_keyword(tag + 2 + (sign != '\0' ? 1 : 0), "endraw");
      const size_t close = end == 0 ? 0 : close_length(end, "%}");
      if (close == 0) continue;
      const std::string_view data = std::string_view(source_).substr(at_, tag - at_);
      const std::string_view kept = strip_before_tag(data, sign, false);
      if (!kept.empty()) push(TokenType::kData, std::string(kept));
      advance(end - at_);
      close_tag("%}", true);
      return true;
    }
    fail_at(line, "missing end of raw directive");
  }

  // Where `keyword`, with white space around it, ends; 0 when it isn't there.
  size_t match_keyword(size_t at, std::string_view keyword) const {
    const std::string_view text = source_;
    at = text.size() - strip(text.substr(std::min(at, text.size())), true, false).size();
    if (text.substr(at, keyword.size()) != keyword) return 0;
    at += keyword.size();
    return text.size() - strip(text.substr(at), true, false).size();
  }

  // Length of `close` at `at`, with its sign; 0 when it isn't there.
  size_t close_length(size_t at, std::string_view close) const {
    const size_t sign = sign_at(at) != '\0' ? 1 : 0;
    return std::string_view(source_).substr(at + sign, close.size()) == close ? sign + close.size()
                                                                              : 0;
  }

  // trim_blocks: the newline right after a block or comment goes.
  void close_tag(std::string_view close, bool trims_newline) {
    const char sign = sign_at(at_);
    advance(close_length(at_, close));
    if (sign == '-') {
      skip_space();
    } else if (sign == '\0' && trims_newline && looking_at("\n")) {
      advance(1);
    }
  }

  void lex_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fail_at(line_, "missing end of comment tag");
    const bool has_sign = end > at_ && sign_at(end - 1) != '\0';
    advance(end - at_ - (has_sign ? 1 : 0));
    close_tag("#}", true);
  }

  void lex_tag(bool is_block) {
    const std::string_view close = is_block ? "%}" : "}}";
    std::string open_brackets;
    while (at_ < source_.size()) {
      // Inside brackets `}}` is two closing braces. A print statement knows no `+}}`.
      const bool closes = open_brackets.empty() && close_length(at_, close) != 0 &&
                          (is_block || source_[at_] != '+');
      if (closes) {
        push(is_block ? TokenType::kBlockEnd : TokenType::kVariableEnd, "");
        close_tag(close, is_block);
        return;
      }
      lex_token(open_brackets);
    }
  }

  void lex_token(std::string& open_brackets) {
    size_t next = at_;
    const char32_t first = next_character(source_, next);
    if (is_space(first)) {
      skip_space();
    } else if (first >= '0' && first <= '9') {
      lex_number();
    } else if (first == '_' || is_letter(first)) {
      lex_name();
    } else if (first == '"' || first == '\'') {
      lex_string();
    } else {
      lex_operator(open_brackets);
    }
  }

  void lex_name() {
    size_t end = at_;
    for (size_t next = at_; next < source_.size(); end = next) {
      const size_t start = next;
      next_character(source_, next);
      // Grow while the whole is still a name: marks may follow letters.
      if (!is_identifier("_" + source_.substr(start, next - start))) break;
    }
    push(TokenType::kName, source_.substr(at_, end - at_));
    advance(end - at_);
  }

  void lex_operator(std::string& open_brackets) {
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](std::string_view symbol) { return looking_at(symbol); });
    if (found == kOperators.end()) {
      fail_at(line_, fmt::format("unexpected character '{}'",
                                 source_.substr(at_, character_size(source_, at_))));
    }
    const size_t bracket = std::string_view("([{)]}").find((*found)[0]);
    if (bracket < 3) {
      open_brackets += ")]}"[bracket];
    } else if (bracket != std::string_view::npos) {
      if (open_brackets.empty()) fail_at(line_, fmt::format("unexpected '{}'", *found));
      if (open_brackets.back() != (*found)[0]) {
        fail_at(line_, fmt::format("unexpected '{}', expected '{}'", *found, open_brackets.back()));
      }
      open_brackets.pop_back();
    }
    push(TokenType::kOperator, std::string(*found));
    advance(found->size());
  }

  void lex_number() {
    const bool is_behind_dot = at_ > 0 && source_[at_ - 1] == '.';
    const NumberLiteral number = read_number_literal(rest(), is_behind_dot, line_);
    push(TokenType::kNumber, source_.substr(at_, number.length));
    tokens_.back().number = number.value;
    advance(number.length);
  }

  void lex_string() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) {
      fail_at(line_, fmt::format("unexpected character '{}': the string has no end", quote));
    }
    push(TokenType::kString,
         unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), line_));
    advance(end + 1 - at_);
  }

  std::string source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::kData:
      return "template text";
    case TokenType::kVariableBegin:
      return "begin of print statement";
    case TokenType::kVariableEnd:
      return "end of print statement";
    case TokenType::kBlockBegin:
      return "begin of statement block";
    case TokenType::kBlockEnd:
      return "end of statement block";
    case TokenType::kString:
      return "a string";
    case TokenType::kEnd:
      return "end of template";
    default:
      return "'" + token.text + "'";
  }
}

void fail_at(int line, const std::string& message) {
  fail(fmt::format("line {}: {}", line, message));
}

void fail_unsupported_at(int line, const std::string& message) {
  fail_unsupported(fmt::format("line {}: {}", line, message));
}

}  // namespace tgi::jinja
