#include "engine/dialect/arguments_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/dialect/bare_values.h"
#include "engine/dialect/json_scanner.h"
#include "engine/dialect/tool_schema.h"
#include "engine/guide/json_schema.h"
#include "engine/guide/regex.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::Regex;
using guide::Rule;

// A list of properties that is empty, and nothing else that could name one: there are none.
bool has_no_arguments(const OrderedJson& schema) {
  constexpr std::array<std::string_view, 10> kNamesNone = {
      "type", "properties", "required",    "$defs",    "definitions",
      "$id",  "$schema",    "description", "$comment", "title"};
  if (!schema.contains("properties")) return false;
  return std::ranges::all_of(schema.items(), [&](const auto& item) {
    const bool lists = item.key() == "properties" || item.key() == "required";
    if (lists && !item.value().empty()) return false;
    return std::ranges::find(kNamesNone, item.key()) != kNamesNone.end();
  });
}

// Arguments are an object, whether the schema says so or not.
OrderedJson object_schema(const Tool& tool) {
  const OrderedJson& schema = tool.parameters;
  const OrderedJson object = "object";
  const auto type = schema.find("type");
  const bool may_be = type == schema.end() || *type == object ||
                      (type->is_array() && std::ranges::find(*type, object) != type->end());
  if (!may_be) {
    if (tool.strict) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("tool {}: #/type: {}, but the arguments of a call are an object",
                              tool.name, type->dump()));
    }
    return {{"type", "object"}};
  }
  OrderedJson out = schema;
  // What stands beside a reference may not count.
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    OrderedJson& all = out["allOf"];
    if (!all.is_array()) all = OrderedJson::array();
    all.push_back({{"$ref", *reference}});
    out.erase("$ref");
  }
  out["type"] = object;
  if (has_no_arguments(schema)) out["additionalProperties"] = false;
  return out;
}

}  // namespace

Expr other_argument_name(Grammar& grammar, const std::vector<std::string>& known) {
  guide::RegexPool& pool = grammar.regex();
  std::vector<Regex> names;
  for (const std::string& name : known) names.push_back(pool.literal(name));
  return grammar.terminal(pool.without(
      parse_regex(pool, "[A-Za-z0-9_.-]{1,64}", guide::RegexUse::kWhole), pool.either(names)));
}

// Each place in the list is two rules: with a comma first, and without where nothing came before.
Expr comma_list(Grammar& grammar,
                const std::vector<ListEntry>& entries,
                std::optional<Expr> other) {
  const Expr comma = grammar.sequence({grammar.text(","), optional_space(grammar)});
  Expr behind_some = grammar.empty_text();
  Expr behind_none = grammar.empty_text();
  if (other) {
    const Expr more = grammar.repeat(grammar.sequence({comma, *other}), 0, guide::kUnbounded);
    behind_some = more;
    behind_none = grammar.optional(grammar.sequence({*other, more}));
  }
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const Rule rest = grammar.declare(entry->name);
    grammar.define(rest, behind_some);
    const Expr first = grammar.sequence({entry->expr, grammar.call(rest)});
    const Expr with_comma = grammar.sequence({comma, first});
    behind_none = entry->is_required ? first : grammar.either({first, behind_none});
    behind_some =
        entry->is_required ? with_comma : grammar.either({with_comma, grammar.call(rest)});
  }
  return behind_none;
}

Expr optional_space(Grammar& grammar) {
  return grammar.terminal(
      parse_regex(grammar.regex(), " ?|\\n{1,2} {0,12}", guide::RegexUse::kWhole));
}

Expr written_mark(Grammar& grammar, std::string_view mark, const IsSpecialToken& is_special) {
  std::vector<Expr> out;
  for (const MarkPiece& piece : pieces_of(mark, is_special)) {
    out.push_back(piece.is_special ? grammar.special_token(piece.text) : grammar.text(piece.text));
  }
  return grammar.sequence(out);
}

Expr text_without(Grammar& grammar,
                  const std::vector<std::string_view>& marks,
                  const IsSpecialToken& is_special) {
  Regex out = grammar.regex().any_text();
  for (const std::string_view mark : marks) {
    const std::vector<MarkPiece> pieces = pieces_of(mark, is_special);
    if (pieces.empty() || pieces.front().is_special) continue;
    out = without_mark(grammar, out, pieces.front().text);
  }
  return grammar.terminal(out);
}

Expr json_arguments(Grammar& grammar, const Tool& tool) {
  return json_of(grammar, tool, object_schema(tool), /*only_object=*/true, json_options(false));
}

Expr keyword_arguments(Grammar& grammar, const Tool& tool, const CallPart& part) {
  const auto keyword = [&](Expr name, const OrderedJson& schema) {
    const Expr value = json_of(grammar, tool, whole_schema(tool, schema), /*only_object=*/false,
                               json_options(part.has_python_words));
    return grammar.sequence({name, grammar.text("="), value});
  };
  std::vector<ListEntry> entries;
  std::vector<std::string> names;
  for (const ToolProperty& property : properties_of(tool)) {
    const std::string& name = property.name;
    const bool is_known = !name.empty() && !is_json_space(name.front()) && name.front() != ')';
    if (!is_known) refuse_name(tool, "#/properties/" + name);
    entries.push_back({.name = name,
                       .expr = keyword(grammar.text(name), *property.schema),
                       .is_required = property.is_required});
    names.push_back(name);
  }
  std::optional<Expr> other;
  if (const OrderedJson* const others = schema_of_others(tool)) {
    other = keyword(other_argument_name(grammar, names), *others);
  }
  return comma_list(grammar, entries, other);
}

}  // namespace tgi::dialect
