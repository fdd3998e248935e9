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

}  // namespace tgi
