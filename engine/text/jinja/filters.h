// The filters of the language: what may stand behind `|`, and in map. One table per file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/text/jinja/builtin.h"

namespace tgi::jinja {

// Null when there is none called so.
const Builtin* find_filter(std::string_view name);

std::span<const Builtin> value_filters();     // filters.cc
std::span<const Builtin> text_filters();      // filters_text.cc
std::span<const Builtin> sequence_filters();  // filters_sequence.cc
std::span<const Builtin> select_filters();    // filters_select.cc

// `kind`: "filter" or "test". kUnsupported when jinja2 has it, kInvalidArgument when nobody has.
Error unknown_name_error(std::string_view kind, const std::string& name);

// Looks up "a.b.0" in a value, as the `attribute` argument of many filters does.
class AttributePath {
 public:
  // None stands for the value itself.
  explicit AttributePath(const Value& attribute);

  // `fallback`: what stands for an undefined part, unless None.
  Value get(Interpreter& in, Value value, const Value& fallback) const;
  Value get(Interpreter& in, Value value) const { return get(in, std::move(value), Value()); }

 private:
  std::vector<Value> parts_;
};

}  // namespace tgi::jinja
