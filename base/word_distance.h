// How far a word is from another, for advice on what was meant.
#pragma once

#include <cstddef>
#include <string_view>

namespace tgi {

// Damerau's and Levenshtein's distance, with swaps of neighbours (optimal string alignment).
size_t word_distance(std::string_view a, std::string_view b);

}  // namespace tgi
