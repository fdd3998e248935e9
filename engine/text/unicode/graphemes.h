// Extended grapheme clusters (Unicode UAX #29), what a reader takes for one character, with the
// borders that the `tokenizers` library sees.
#pragma once

#include <cstddef>
#include <string_view>

namespace tgi {

// Where the grapheme that begins at `begin` ends. Pairs of regional indicators count as two: nobody
// asks for graphemes that long. REQUIRES: valid UTF-8, begin < text.size() and a border.
size_t grapheme_end(std::string_view text, size_t begin);

}  // namespace tgi
