// Numbers and strings as they are written in a template: the notations of Python.
#pragma once

#include <string>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace tgi::jinja {

struct NumberLiteral {
  Value value;
  size_t length = 0;  // bytes read
};

// REQUIRES: `text` starts with a digit. Behind a dot no fraction is read: a.0.1 is two subscripts.
// Throws kInvalidArgument naming the line.
NumberLiteral read_number_literal(std::string_view text, bool is_behind_dot, int line);

// What stands between the quotes, with its escapes resolved.
// Throws kInvalidArgument or kUnsupported naming the line.
std::string unescape(std::string_view text, int line);

}  // namespace tgi::jinja
