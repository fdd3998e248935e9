// Python's two ways to fill in a text: "%s" % values and "{}".format(values).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/text/jinja/value.h"

namespace tgi::jinja {

// `values`: a tuple for several, a dict for %(name)s, anything else for one.
std::string format_percent(const Value& text, const Value& values, Budget& budget);

// Finds the value of a replacement field ("0", "name", "name.key[1]"; never empty).
using FieldLookup = std::function<Value(std::string_view field)>;

std::string format_braces(std::string_view text, const FieldLookup& lookup, Budget& budget);

// format(value, specification), as in f"{value:>8}".
std::string format_value(const Value& value, std::string_view specification, Budget& budget);

}  // namespace tgi::jinja
