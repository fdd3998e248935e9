// The grammar of a tool's arguments in the notations of the dialects.
#pragma once

#include <string_view>

#include "engine/dialect/call_syntax.h"
#include "engine/dialect/marked_text.h"
#include "engine/dialect/tools.h"
#include "engine/guide/grammar.h"

namespace tgi::dialect {

// White space that a model may write or leave out: blanks, or line ends and an indentation.
guide::Expr optional_space(guide::Grammar& grammar);

// A mark, its special tokens by name.
guide::Expr written_mark(guide::Grammar& grammar,
                         std::string_view mark,
                         const IsSpecialToken& is_special);

// Any text in which `mark` does not occur; a special token never does.
guide::Expr text_without(guide::Grammar& grammar,
                         std::string_view mark,
                         const IsSpecialToken& is_special);

// As a JSON object; as text between marks; as keywords of Python. All throw what add_json_schema
// throws, when the tool is strict; else what can't be enforced is left open.
guide::Expr json_arguments(guide::Grammar& grammar, const Tool& tool);
guide::Expr parameter_arguments(guide::Grammar& grammar,
                                const Tool& tool,
                                const CallPart& part,
                                const IsSpecialToken& is_special);
guide::Expr keyword_arguments(guide::Grammar& grammar, const Tool& tool);

}  // namespace tgi::dialect
