// A compiled regular expression of tokenizer.json, run by PCRE2. Immutable after construction: any
// thread may search with it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;

namespace tgi {

// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin;
  size_t end;

  size_t size() const { return end - begin; }
  std::string_view in(std::string_view text) const { return text.substr(begin, end - begin); }
};

class Regex {
 public:
  // Throws kUnsupported with the pattern, the place in it and the reason.
  explicit Regex(std::string_view pattern);

  // Appends the matches in `text`, left to right, without overlap; an empty match right after
  // another one is skipped. Look-behind does not see what is before `text`. REQUIRES: valid UTF-8.
  // Throws kInvalidArgument when the search needs more than its limits allow.
  void find_all(std::string_view text, std::vector<TextRange>& matches) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  using CodePointer = std::unique_ptr<pcre2_real_code_8, FreeCode>;

  CodePointer compile(bool newer_unicode) const;

  std::string pattern_;  // for messages
  CodePointer code_;
  CodePointer newer_code_;  // for texts with characters that this PCRE2 does not know; or null
};

}  // namespace tgi
