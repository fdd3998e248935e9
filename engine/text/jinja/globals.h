// The functions a template finds without being given them: range, dict, namespace, cycler, joiner
// from jinja2; raise_exception and strftime_now from transformers.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "engine/text/jinja/builtin.h"
#include "engine/text/jinja/value.h"

namespace tgi::jinja {

// Null when there is none called so.
const Builtin* find_global(std::string_view name);

// Refuses names that begin with an underscore, as transformers does.
void set_namespace_attribute(NamespaceObject& space, const std::string& name, Value value);

// datetime.strftime of a time without time zone, in the C locale.
std::string format_time(const std::tm& time, std::string_view format, Budget& budget);

}  // namespace tgi::jinja
