// The formats of JSON Schema as patterns. Source: JSON Schema 2020-12 validation, section 7, and
// the RFCs it names; OpenAPI 3 for those of numbers.
#pragma once

#include <string>
#include <string_view>

namespace tgi::guide {

struct Format {
  std::string name;
  std::string pattern;  // of the whole string; empty: any string
  std::string minimum;  // of numbers, inclusive; empty: any number
  std::string maximum;
  bool is_narrowed = false;  // strings that are not of the pattern may be of the format too
};

// Null for a name that is not known.
const Format* find_format(std::string_view name);

// The format that is meant by one that has another case or other marks ("dateTime"); empty: none.
std::string misspelt_format(std::string_view name);

}  // namespace tgi::guide
