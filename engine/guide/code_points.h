// Sets of characters as sorted ranges of code points, and their UTF-8 as an expression.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/guide/expr_pool.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

// Sorted, disjoint, not adjacent, without surrogates, at most U+10FFFF.
using CodePoints = std::vector<CodePointRange>;

CodePoints normalize_code_points(std::span<const CodePointRange> ranges);
CodePoints negate_code_points(const CodePoints& set);
CodePoints intersect_code_points(const CodePoints& a, const CodePoints& b);
bool contains_code_point(const CodePoints& set, char32_t character);

// One character of the set, as its UTF-8.
int32_t utf8_of(ExprPool& pool, const CodePoints& set);

}  // namespace tgi::guide
