// What stands for one character in a regular expression: escapes. Used by the parsers of patterns
// and of classes only.
#pragma once

#include <string_view>

#include "engine/guide/code_points.h"

namespace tgi::guide {

// A pattern and how far it is read. REQUIRES: valid UTF-8.
struct RegexText {
  std::string_view pattern;
  size_t at = 0;

  bool at_end() const { return at >= pattern.size(); }
  char peek() const { return pattern[at]; }
  bool take(char c) {
    if (at_end() || peek() != c) return false;
    ++at;
    return true;
  }
  char32_t take_character();
  [[noreturn]] void refuse(std::string_view what) const;
  [[noreturn]] void refuse_unsupported(std::string_view what) const;
};

// REQUIRES: a backslash is next. What asserts something is none of its business.
CodePoints parse_regex_escape(RegexText& text, bool in_class);

}  // namespace tgi::guide
