// Cuts a template into tokens, with the white space rules of an environment that has trim_blocks
// and lstrip_blocks on and keep_trailing_newline off, as transformers sets it. Grammar:
// jinja.palletsprojects.com/en/stable/templates ("Whitespace Control", "Literals").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/value.h"

namespace tgi::jinja {

enum class TokenType : uint8_t {
  kData,  // text between tags
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kNumber,
  kOperator,  // `text` is the operator
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 1;
  std::string text;  // of a string: unescaped
  Value number;

  bool is_name(std::string_view name) const { return type == TokenType::kName && text == name; }
  bool is_operator(std::string_view symbol) const {
    return type == TokenType::kOperator && text == symbol;
  }
};

// The last token is kEnd. REQUIRES: valid UTF-8.
// Throws kInvalidArgument naming the line.
std::vector<Token> tokenize(std::string_view source);

// How a message calls the token: "end of print statement", "'endfor'".
std::string describe(const Token& token);

[[noreturn]] void fail_at(int line, const std::string& message);
[[noreturn]] void fail_unsupported_at(int line, const std::string& message);

}  // namespace tgi::jinja
