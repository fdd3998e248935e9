#include "engine/guide/canonical_tokens.h"

#include <algorithm>
#include <string>

#include "engine/text/tokenizer.h"

namespace tgi::guide {
namespace {

// Of the tokens the last ones, which write the text and nothing else. Empty: there are none.
std::vector<int32_t> tail_of(const std::vector<int32_t>& ids,
                             const Vocabulary& vocabulary,
                             std::string_view text) {
  size_t first = ids.size();
  while (first > 0 && !text.empty()) {
    const int32_t id = ids[first - 1];
    const std::string_view bytes =
        id >= 0 && id < vocabulary.size() ? vocabulary.bytes(id) : std::string_view();
    if (bytes.empty() || !text.ends_with(bytes)) return {};
    text.remove_suffix(bytes.size());
    --first;
  }
  if (!text.empty()) return {};
  return {ids.begin() + static_cast<ptrdiff_t>(first), ids.end()};
}

}  // namespace

std::vector<int32_t> canonical_tokens(const Tokenizer& tokenizer,
                                      const Vocabulary& vocabulary,
                                      std::string_view text) {
  std::vector<int32_t> ids = tail_of(tokenizer.encode(text, false), vocabulary, text);
  // Some put a space before a text, which none is in its midst.
  if (ids.empty()) {
    const std::string behind_a_line = "\n" + std::string(text);
    ids = tail_of(tokenizer.encode(behind_a_line, false), vocabulary, text);
  }
  if (ids.empty()) return ids;
  ids.pop_back();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (vocabulary.has_longer(text)) {
      ids.resize(i);
      break;
    }
    text.remove_prefix(vocabulary.bytes(ids[i]).size());
  }
  return ids;
}

}  // namespace tgi::guide
