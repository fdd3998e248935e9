// The texts that JSON writes a string with, as regular languages.
//
// Canonical texts escape what has to be escaped and nothing else: quotes, backslashes and control
// characters, by the short escape where there is one or as \uXXXX. They are what is written for
// strings that a pattern, a length or a list describes, and for the names of properties.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/guide/regex.h"

namespace tgi::guide {

// With quotes, canonical, with the short escapes. REQUIRES: valid UTF-8.
std::string quoted_json(std::string_view text);
// The same in Python's single quotes.
std::string quoted_python(std::string_view text);

// Not thread-safe; belongs to one pool.
class JsonTextRegex {
 public:
  explicit JsonTextRegex(RegexPool& pool) : pool_(pool) {}

  // One character of a string, in all writings that RFC 8259 knows (pairs of surrogates, no
  // halves). Between `quote`s: Python's single ones trade places with the double ones.
  Regex any_character(char quote = '"');

  // The canonical texts, without quotes, of the strings of a language.
  Regex canonical(Regex language);

 private:
  RegexPool& pool_;
  // Made when they are asked for.
  std::map<char, Regex> any_character_;  // by the quotes around it
  std::optional<Regex> needs_escape_;    // texts with a character that does
};

}  // namespace tgi::guide
