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
  std::string_view why = {};      // it is refused
  std::string_view instead = {};  // what to write
};

std::span<const KeywordRow> keyword_rows();

// The enforced keyword that a name may be meant for: by its case, its number, or a slip of the pen.
// Empty: none.
std::string_view misspelt_keyword(std::string_view name);

// Throws kUnsupported for the first keyword that is refused, or that is none and looks like one, as
// limits would go unheeded. Other names are of other programs: JSON Schema (2020-12, section 4.3.1)
// takes them for annotations.
void check_keywords(const SchemaPlace& schema);

}  // namespace tgi::guide
