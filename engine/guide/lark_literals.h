// Names, numbers, strings and patterns as Lark writes them. Used by the readers of Lark only.
#pragma once

#include <string>
#include <utility>

#include "engine/guide/source_text.h"

namespace tgi::guide {

bool is_lark_word(char c);

// The name that the source is at. Throws kInvalidArgument, "expected " and `what`, for none.
std::string take_lark_word(SourceText& source, const std::string& what);

// How often something is repeated, behind ~ (n, n..m) or { (n}, n,}, ,m}, n,m}): the fewest, and
// the most, which may be kUnbounded.
enum class LarkCounts { kAfterTilde, kAfterBrace };
std::pair<int32_t, int32_t> take_lark_counts(SourceText& source, LarkCounts form);

// The value of the string that the source is at.
std::string take_lark_string(SourceText& source);

// The pattern between slashes that the source is at, its flags in front of it.
std::string take_lark_pattern(SourceText& source);

}  // namespace tgi::guide
