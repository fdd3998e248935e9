// Parts of a text, as %regex of Lark asks for them. Used by the reader of Lark only.
#pragma once

#include "base/nlohmann_json.h"
#include "engine/guide/regex.h"

namespace tgi::guide {

// {"substring_chunks": [...]}: any number of them that are one behind the other. Also
// substring_words and substring_chars, which cut a text themselves: into letters and digits, white
// space and what is neither, or into characters. Throws for what is none of these.
Regex substring_regex(RegexPool& pool, const nlohmann::ordered_json& json);

}  // namespace tgi::guide
