// The grammar of a tool's arguments in the notations of the dialects.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Any text in which none of the marks occurs; a special token never does.
guide::Expr text_without(guide::Grammar& grammar,
                         const std::vector<std::string_view>& marks,
                         const IsSpecialToken& is_special);

// The name of an argument that is none of the known ones.
guide::Expr other_argument_name(guide::Grammar& grammar, const std::vector<std::string>& known);

// Entries in their order with commas between, those that are not required or left out; then any
// number of `other`.
struct ListEntry {
  std::string name;  // for people: in errors
  guide::Expr expr;
  bool is_required = true;
};
guide::Expr comma_list(guide::Grammar& grammar,
                       const std::vector<ListEntry>& entries,
                       std::optional<guide::Expr> other);

// As a JSON object; as text between marks; as keywords of Python; as entries of Gemma; as elements
// of MiniMax. All throw what add_json_schema throws, when the tool is strict; else what can't be
// enforced is left open.
guide::Expr json_arguments(guide::Grammar& grammar, const Tool& tool);
guide::Expr parameter_arguments(guide::Grammar& grammar,
                                const Tool& tool,
                                const CallPart& part,
                                const IsSpecialToken& is_special);
guide::Expr keyword_arguments(guide::Grammar& grammar, const Tool& tool, const CallPart& part);
guide::Expr entry_arguments(guide::Grammar& grammar,
                            const Tool& tool,
                            const CallPart& part,
                            const IsSpecialToken& is_special);
guide::Expr element_arguments(guide::Grammar& grammar,
                              const Tool& tool,
                              const CallPart& part,
                              const IsSpecialToken& is_special);

}  // namespace tgi::dialect
