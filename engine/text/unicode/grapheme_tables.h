// The classes of characters that graphemes are made of (Unicode UAX #29), as the `tokenizers`
// library has them. The rows are written by scripts/golden/make_grapheme_tables.
#pragma once

#include <span>

namespace tgi {

enum class GraphemeClass {
  kOther,  // Hangul and regional indicators too: graphemes.cc knows those
  kControl,
  kPrepend,
  kPictographic,
  kConsonant,  // of an Indic conjunct
  // From here on: joins what stands before it.
  kSpacingMark,
  kExtend,
  kConjoiningExtend,  // an extension that may stand inside a conjunct
  kLinker,            // the same, and it joins two consonants
  kJoiner,            // U+200D, the same as kConjoiningExtend but for pictographs
};

struct GraphemeRange {
  char32_t first, last;  // both inside
  GraphemeClass grapheme_class;
};

// Sorted by code, without overlap; what is in none is kOther.
std::span<const GraphemeRange> grapheme_ranges();

}  // namespace tgi
