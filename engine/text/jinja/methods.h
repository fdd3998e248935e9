// The attributes of values: methods of str, list, tuple, dict and the rest as Python has them.
// Methods that would change a list or a dict exist but are refused, as in jinja2's immutable
// sandbox.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/builtin.h"
#include "engine/text/jinja/value.h"

namespace tgi::jinja {

// object.name, for the objects whose attributes don't depend on the interpreter. Nothing when there
// is none; an undefined value when it is not to be used.
std::optional<Value> find_attribute(const Value& object, std::string_view name);

const Builtin* find_string_method(std::string_view name);

}  // namespace tgi::jinja
