#include "engine/text/tokenizer/alignment.h"

#include "base/utf8.h"

namespace tgi {

Alignment align_characters(std::string_view text, size_t begin) {
  Alignment alignment;
  alignment.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_size(text[at]);
    alignment.insert(alignment.end(), size, {begin + at, begin + at + size});
    at += size;
  }
  return alignment;
}

void align_changes(std::string_view text,
                   std::string_view changed,
                   const Changes& changes,
                   Alignment& alignment) {
  AlignmentWriter places(&alignment);
  size_t from = 0;  // in text
  size_t at = 0;    // in changed
  for (const int64_t change : changes) {
    const size_t size = utf8_size(changed[at]);
    at += size;
    if (change > 0) {  // the place of what stands before it
      places.place(from == 0 ? text.size() : from - 1, size);
      continue;
    }
    places.place(from, size);
    for (int64_t i = change; i <= 0 && from < text.size(); ++i) from += utf8_size(text[from]);
  }
  places.finish();
}

}  // namespace tgi
