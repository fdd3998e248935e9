// The grammar of arguments that stand between marks, each by itself: texts without quotes, all else
// as JSON.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dialect/arguments_grammar.h"
#include "engine/dialect/bare_values.h"
#include "engine/dialect/tool_schema.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::Regex;

// One form of an argument: what stands between its name and its value, and the value.
struct ParameterForm {
  std::string middle;
  Expr value;
};

class ParameterNotation {
 public:
  ParameterNotation(Grammar& grammar,
                    const Tool& tool,
                    const CallPart& part,
                    const IsSpecialToken& is_special)
      : grammar_(grammar), tool_(tool), part_(part), is_special_(is_special) {
    const std::vector<MarkPiece> close = pieces_of(part.close, is_special);
    if (!close.empty() && !close.front().is_special) close_ = close.front().text;
  }

  Expr arguments() {
    std::vector<Expr> out = {optional_space(grammar_)};
    std::vector<std::string> names;
    for (const ToolProperty& property : properties_of(tool_)) {
      const Expr one = argument(grammar_.text(property.name), *property.schema);
      out.push_back(property.is_required ? one : grammar_.optional(one));
      names.push_back(property.name);
    }
    if (const OrderedJson* const others = schema_of_others(tool_)) {
      const Expr other = argument(other_argument_name(grammar_, names), *others);
      out.push_back(grammar_.repeat(other, 0, guide::kUnbounded));
    }
    return grammar_.sequence(out);
  }

 private:
  Expr argument(Expr name, const OrderedJson& schema) {
    const Expr line_end = grammar_.text(part_.on_lines ? "\n" : "");
    const Expr gap = part_.value_open.empty() ? grammar_.empty_text() : optional_space(grammar_);
    std::vector<Expr> out;
    for (const ParameterForm& form : forms(schema)) {
      out.push_back(grammar_.sequence(
          {written_mark(grammar_, part_.open, is_special_), name,
           written_mark(grammar_, form.middle, is_special_), gap,
           written_mark(grammar_, part_.value_open, is_special_), line_end, form.value, line_end,
           written_mark(grammar_, part_.close, is_special_), optional_space(grammar_)}));
    }
    return grammar_.either(out);
  }

  std::vector<ParameterForm> forms(const OrderedJson& schema) {
    BareValues values(grammar_, tool_, schema);
    const std::string middle(part_.middle);
    if (!part_.type_close.empty()) return typed_forms(values);
    if (!part_.section_open.empty()) return {{middle, in_section_or_not(values)}};
    if (part_.middle_of_json.empty()) return {{middle, values.texts_or_json(close_)}};
    std::vector<ParameterForm> out;
    if (const auto texts = values.texts(/*is_told=*/true, close_)) {
      out.push_back({middle, grammar_.terminal(*texts)});
    }
    if (const auto json = values.json()) out.push_back({std::string(part_.middle_of_json), *json});
    return out;
  }

  // The type of each is told by its word.
  std::vector<ParameterForm> typed_forms(BareValues& values) {
    std::vector<ParameterForm> out;
    for (const TypeWord& type : kTypeWords) {
      std::optional<Expr> value;
      if (type.bit != kStringBit) {
        value = values.json(type.bit);
      } else if (const auto texts = values.texts(/*is_told=*/true, close_)) {
        value = grammar_.terminal(*texts);
      }
      if (!value) continue;
      out.push_back({fmt::format("{}{}{}", part_.middle, type.word, part_.type_close), *value});
    }
    return out;
  }

  // Texts that have what would confuse their reader stand in a section of their own, which tells
  // that they are strings.
  Expr in_section_or_not(BareValues& values) {
    std::vector<Expr> out;
    const Regex plain = parse_regex(grammar_.regex(), "[^<&\\n]*", guide::RegexUse::kWhole);
    const auto texts = values.texts(/*is_told=*/false, "");
    if (texts) out.push_back(grammar_.terminal(grammar_.regex().both(*texts, plain)));
    if (const auto told = values.texts(/*is_told=*/true, std::string(part_.section_close))) {
      out.push_back(grammar_.sequence({written_mark(grammar_, part_.section_open, is_special_),
                                       grammar_.terminal(*told),
                                       written_mark(grammar_, part_.section_close, is_special_)}));
    }
    const auto json = texts ? values.json(values.types_beside_texts()) : values.json();
    if (json) out.push_back(*json);
    return grammar_.either(out);
  }

  Grammar& grammar_;
  const Tool& tool_;
  const CallPart& part_;
  const IsSpecialToken& is_special_;
  std::string close_;  // what ends a text; empty where it is a special token
};

}  // namespace

Expr parameter_arguments(Grammar& grammar,
                         const Tool& tool,
                         const CallPart& part,
                         const IsSpecialToken& is_special) {
  return ParameterNotation(grammar, tool, part, is_special).arguments();
}

}  // namespace tgi::dialect
