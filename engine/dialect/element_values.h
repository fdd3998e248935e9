// Values in the notation of MiniMax M3's calls: an object is an element for each member, an array
// one named "item" for each value, all else its text as it is. A mark stands before every tag, so
// that no text is taken for one. Nothing stands for null, and empty arrays and objects are nothing:
// the schema tells what is meant.
// Source: the chat template of MiniMax M3.
#pragma once

#include <string>
#include <string_view>

#include "engine/dialect/tools.h"

namespace tgi::dialect {

inline constexpr std::string_view kItemElement = "item";

// What stands between two tags as JSON; empty when it is no such value. `mark`: before tags, as it
// stands in marked text. `schema`: of the value, or null; `root`: what it refers into. Names of
// closing tags are not looked at.
std::string json_of_elements(std::string_view value,
                             std::string_view mark,
                             const OrderedJson* schema,
                             const OrderedJson& root);

// Of an object's schema what it says of a member, or null.
const OrderedJson* schema_of_member(const OrderedJson* schema,
                                    std::string_view name,
                                    const OrderedJson& root);

// Finds where the element ends whose opening tag stood before the text: the place of the mark
// before its closing tag. npos: not yet.
class ElementScanner {
 public:
  // `text`: all that was written behind the opening tag; it may only grow.
  size_t find_end(std::string_view text, std::string_view mark);

 private:
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace tgi::dialect
