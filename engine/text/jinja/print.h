// How values are written: str() and repr() of Python, and JSON as json.dumps writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace tgi::jinja {

std::string to_text(const Value& value, Budget& budget);  // str()
std::string to_repr(const Value& value, Budget& budget);  // repr()

std::string print_integer(Int value, int base = 10);  // digits a-f in lower case, no mark
std::string print_float(double value);                // the shortest text that reads back the same

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // of one level; nothing: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Throws kInvalidArgument naming the type of what JSON has no word for.
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

}  // namespace tgi::jinja
