// Classes of characters in brackets: ECMA-262's, and what Rust's crate `regex` adds to them. Used
// by regex_syntax.cc only.
#pragma once

#include "engine/guide/code_points.h"
#include "engine/guide/regex.h"
#include "engine/guide/regex_escape.h"

namespace tgi::guide {

// REQUIRES: [ is next. ignore_case: sets are closed under case before something is taken from them.
CodePoints parse_regex_class(RegexText& text, RegexSyntax syntax, bool ignore_case);

}  // namespace tgi::guide
