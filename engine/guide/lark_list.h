// Several grammars that name each other, as llguidance's callers send them: a JSON text
// {"grammars": [{"lark_grammar": "start: @other"}, {"name": "other", "json_schema": {...}}]}, of
// which the first is the whole. Used by the reader of Lark only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/nlohmann_json.h"

namespace tgi::guide {

struct ListedGrammar {
  std::string name;  // "" where nothing can refer to it
  std::string lark;
  nlohmann::ordered_json schema;  // where `lark` is empty
};

inline constexpr size_t kMaxListedGrammars = 1000;

// A text that is no JSON object is a list of itself. Throws kInvalidArgument, for fields that are
// not known kUnsupported, each with its name.
std::vector<ListedGrammar> read_grammar_list(std::string_view text);

}  // namespace tgi::guide
