// The text of a grammar while it is read, and errors that say where in it they are.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi::guide {

struct SourceText {
  std::string_view text;
  size_t at = 0;
  std::string title = "the grammar";

  bool at_end() const { return at >= text.size(); }
  char peek(size_t ahead = 0) const { return at + ahead < text.size() ? text[at + ahead] : '\0'; }
  std::string_view rest() const { return text.substr(at); }
  bool take(std::string_view what) {
    if (!rest().starts_with(what)) return false;
    at += what.size();
    return true;
  }

  [[noreturn]] void refuse(size_t place, const std::string& what, Code code) const {
    constexpr size_t kShown = 24;
    place = place < text.size() ? place : text.size();
    const std::string_view before = text.substr(0, place);
    const auto line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t line_begin = before.rfind('\n') + 1;  // 0 when there is none
    const auto column = count_utf8_characters(before.substr(line_begin)) + 1;
    std::string_view found = text.substr(place, text.find('\n', place) - place);
    if (found.size() > kShown) found = found.substr(0, character_begin(found, kShown));
    throw Error(code, title + ", line " + std::to_string(line) + ", column " +
                          std::to_string(column) + ": " + what +
                          (place == text.size() ? ", found the end"
                           : found.empty()      ? ", found the end of the line"
                                                : ", found \"" + std::string(found) + "\""));
  }
  [[noreturn]] void refuse(const std::string& what) const {
    refuse(at, what, Code::kInvalidArgument);
  }
  [[noreturn]] void refuse_unsupported(const std::string& what) const {
    refuse(at, what, Code::kUnsupported);
  }
};

}  // namespace tgi::guide
