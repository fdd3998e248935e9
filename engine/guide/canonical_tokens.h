// A text as the tokenizer itself would write it in the midst of others.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/guide/vocabulary.h"

namespace tgi {
class Tokenizer;
}

namespace tgi::guide {

// The canonical tokens of a text that goes on behind it: without the last one and without those
// that a longer token might take the place of, once it is known what follows. Empty, too, where the
// tokenizer has no tokens for the text alone. `vocabulary` is the tokenizer's.
std::vector<int32_t> canonical_tokens(const Tokenizer& tokenizer,
                                      const Vocabulary& vocabulary,
                                      std::string_view text);

using CanonicalTokens = std::function<std::vector<int32_t>(std::string_view text)>;

}  // namespace tgi::guide
