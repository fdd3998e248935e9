// Which characters are of one script (Unicode UAX #24), as the `tokenizers` library has them. The
// rows are written by scripts/golden/make_script_tables.
#pragma once

#include <cstdint>
#include <span>

namespace tgi {

struct ScriptRange {
  char32_t first, last;  // both inside
  int32_t script;        // from 1 on
};

// Sorted by code, without overlap; what is in none fits any script.
std::span<const ScriptRange> script_ranges();

}  // namespace tgi
