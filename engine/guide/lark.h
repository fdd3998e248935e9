// Grammars in Lark's format as llguidance's users write it: rules in lower case, of which `start`
// is the start, terminals in upper case, %import common.X, %ignore, %json, %lark, %llguidance,
// rules with a number; or a list of grammars that name each other (lark_list.h). Texts are matched
// without a lexer: a terminal need not take as much as it could. What %ignore names may stand after
// every terminal, and, as in llguidance, not before the first. Source: Lark's grammar reference,
// and llguidance's description of its syntax.
#pragma once

#include <string_view>

#include "engine/guide/grammar.h"
#include "engine/guide/json_schema.h"

namespace tgi::guide {

// Adds the rules of the text to the grammar and gives the start. `options`: of what %json says.
// Throws kInvalidArgument, for what is known and not supported kUnsupported, each with line and
// column.
Rule add_lark(Grammar& grammar, std::string_view text, const JsonSchemaOptions& options = {});

}  // namespace tgi::guide
