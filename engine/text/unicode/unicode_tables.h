// Where the Unicode versions of the `tokenizers` library differ from those of PCRE2 and utf8proc.
// The rows are written by scripts/golden/make_unicode_tables.
#pragma once

#include <span>
#include <string_view>

namespace tgi {

struct CodeRange {
  char32_t first, last;  // both inside
};

struct CategoryRange {
  char32_t first, last;       // both inside
  std::string_view category;  // general category: "Lu"
};

// Sorted by code, without overlap.
std::span<const CategoryRange> since_unicode_14();
std::span<const CodeRange> opaque_to_normal_forms();
std::span<const CodeRange> not_punctuation();
std::span<const CodeRange> control_characters();
std::span<const CodeRange> nonspacing_marks();

// The row that holds `code`, or nothing.
template <typename Range>
const Range* find_range(std::span<const Range> rows, char32_t code) {
  size_t low = 0;
  size_t high = rows.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (rows[middle].last < code) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < rows.size() && rows[low].first <= code ? &rows[low] : nullptr;
}

}  // namespace tgi
