// Grammars as llama.cpp's users write them (GBNF): rules `name ::= ...`, of which `root` is the
// start. Source: the description of the format in llama.cpp's grammars folder.
#pragma once

#include <string_view>

#include "engine/guide/grammar.h"

namespace tgi::guide {

// Adds the rules of the text to the grammar and gives `root`. Throws kInvalidArgument, for what is
// known and not supported kUnsupported, each with line and column.
Rule add_gbnf(Grammar& grammar, std::string_view text);

}  // namespace tgi::guide
