// Template text → Program. Accepts jinja2's language with the loop controls and transformers'
// {% generation %}; include, import and extends are refused, since a chat template stands alone.
#pragma once

#include <string_view>

#include "engine/text/jinja/ast.h"

namespace tgi::jinja {

// REQUIRES: valid UTF-8.
// Throws kInvalidArgument or kUnsupported, naming the line.
Program parse_template(std::string_view source, const Limits& limits);

}  // namespace tgi::jinja
