#include "engine/dialect/marked_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tgi::dialect {
namespace {

// Special tokens of all known families are written in one of these pairs.
char closing(char c) {
  if (c == '<') return '>';
  if (c == '[') return ']';
  if (c == ']') return '[';
  return '\0';
}

// The special token that the text begins with; empty: there is none.
std::string_view leading_token(std::string_view text, const IsSpecialToken& is_special) {
  const char close = closing(text.front());
  if (close == '\0') return {};
  for (size_t end = text.rfind(close); end != std::string_view::npos && end > 0;
       end = text.rfind(close, end - 1)) {
    if (is_special(text.substr(0, end + 1))) return text.substr(0, end + 1);
  }
  return {};
}

}  // namespace

IsSpecialToken special_tokens_of(const Tokenizer& tokenizer) {
  return [&tokenizer](std::string_view name) {
    const std::optional<int32_t> id = tokenizer.id_of(name);
    return id.has_value() && tokenizer.is_special(*id);
  };
}

std::vector<MarkPiece> pieces_of(std::string_view mark, const IsSpecialToken& is_special) {
  std::vector<MarkPiece> out;
  while (!mark.empty()) {
    const std::string_view token = leading_token(mark, is_special);
    if (!token.empty()) {
      out.push_back({.text = std::string(token), .is_special = true});
      mark.remove_prefix(token.size());
      continue;
    }
    if (out.empty() || out.back().is_special) out.emplace_back();
    out.back().text += mark.front();
    mark.remove_prefix(1);
  }
  return out;
}

std::string marked_token(std::string_view name) {
  std::string out(1, kTokenBorder);
  out += name;
  return out += kTokenBorder;
}

std::string marked(std::string_view mark, const IsSpecialToken& is_special) {
  std::string out;
  for (const MarkPiece& piece : pieces_of(mark, is_special)) {
    out += piece.is_special ? marked_token(piece.text) : piece.text;
  }
  return out;
}

std::string unmarked(std::string_view text) {
  std::string out(text);
  out.erase(std::remove(out.begin(), out.end(), kTokenBorder), out.end());
  return out;
}

size_t length_of_begun(std::string_view text, std::string_view mark) {
  if (mark.empty()) return 0;
  for (size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length) {
    if (text.substr(text.size() - length) == mark.substr(0, length)) return length;
  }
  return 0;
}

}  // namespace tgi::dialect
