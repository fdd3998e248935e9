// The keywords of JSON Schema: which are enforced, which only describe, which are refused.
#pragma once

#include <span>
#include <string_view>

#include "engine/guide/json/schema_document.h"

namespace tgi::guide {

struct KeywordRow {
  std::string_view name;
  enum class Use { kEnforced, kDescribes, kRefused } use;
  Draft since = Draft::k7;
  std::string_view why = {};  // it is refused
};

std::span<const KeywordRow> keyword_rows();

// Throws kUnsupported for the first keyword that is not known or that is refused. Keywords that
// begin with "x-" are hints for other programs.
void check_keywords(const SchemaPlace& schema);

}  // namespace tgi::guide
