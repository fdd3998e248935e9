// Strings and patterns as Lark writes them. Used by the reader of Lark only.
#pragma once

#include <string>

#include "engine/guide/source_text.h"

namespace tgi::guide {

// The value of the string that the source is at.
std::string take_lark_string(SourceText& source);

// The pattern between slashes that the source is at, its flags in front of it.
std::string take_lark_pattern(SourceText& source);

}  // namespace tgi::guide
