#include "engine/dialect/bare_values.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/dialect/tool_schema.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::Regex;
using guide::RegexPool;

// Most arguments are texts of which nothing more is said.
bool is_any_text(const OrderedJson& schema, uint8_t types) {
  constexpr std::array<std::string_view, 6> kSaysNoMore = {"type",    "title",    "description",
                                                           "default", "examples", "example"};
  return types == kStringBit && has_only(schema, kSaysNoMore);
}

// Of a schema that can't be enforced the words that mean the same alone, as far as they can.
OrderedJson enforceable_words(const Tool& tool, const OrderedJson& part) {
  OrderedJson out = OrderedJson::object();
  const OrderedJson* const schema = behind_references(part, tool.parameters);
  if (schema == nullptr || !schema->is_object()) return out;
  for (const char* const word :
       {"type", "nullable", "enum", "const", "minLength", "maxLength", "pattern", "format"}) {
    if (!schema->contains(word)) continue;
    OrderedJson tried = out;
    tried[word] = (*schema)[word];
    if (is_enforceable(tool, tried, json_options(false))) out = std::move(tried);
  }
  return out;
}

// Texts that json_of_parameter() may take for a value of the type, whatever is in brackets.
std::string_view pattern_of(TypeBits type) {
  switch (type) {
    case kNullBit:
      return "null|None";
    case kBooleanBit:
      return "true|false|True|False";
    case kNumberBit:
      return "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?";
    case kObjectBit:
      return "\\{(?s:.*)\\}";
    case kArrayBit:
      return "\\[(?s:.*)\\]|\\((?s:.*)\\)";
    default:
      return "";
  }
}

}  // namespace

BareValues::BareValues(Grammar& grammar, const Tool& tool, const OrderedJson& schema)
    : grammar_(grammar), tool_(tool), part_(schema), types_(types_of(schema, tool.parameters)) {
  RegexPool& pool = grammar_.regex();
  if (is_any_text(schema, types_)) {
    values_.strings = pool.any_text();
    values_.has_strings = values_.has_every_string = true;
    return;
  }
  schema_ = whole_schema(tool, schema);
  std::optional<guide::SchemaValues> values = enforceable_values(grammar, tool, schema_);
  if (!values) {
    schema_ = {{"allOf", {enforceable_words(tool, schema)}}};
    values = enforceable_values(grammar, tool, schema_);
  }
  if (!values) {
    schema_ = {{"allOf", {true}}};
    values = guide::schema_values(pool, schema_);
  }
  values_ = std::move(*values);
  for (const TypeWord& type : kTypeWords) {
    for (const guide::SchemaValues::Type& other : values_.others) {
      if (other.word != type.word) continue;
      some_ |= type.bit;
      if (other.is_every) every_ |= type.bit;
    }
  }
}

// What the reader would take for a value that the schema has not, or may not have.
Regex BareValues::read_otherwise() {
  RegexPool& pool = grammar_.regex();
  std::vector<Regex> out;
  for (const TypeWord& type : kTypeWords) {
    if ((types_ & ~every_ & ~kStringBit & type.bit) == 0) continue;
    out.push_back(parse_regex(pool,
                              fmt::format("[ \\n\\r\\t]*({})[ \\n\\r\\t]*", pattern_of(type.bit)),
                              guide::RegexUse::kWhole));
  }
  return pool.either(out);
}

std::optional<Regex> BareValues::texts(bool is_told, const std::string& mark) {
  if ((types_ & kStringBit) == 0 || !values_.has_strings) return std::nullopt;
  RegexPool& pool = grammar_.regex();
  Regex out = values_.strings;
  if (!is_told && types_ != kStringBit) {
    out = pool.without(out, read_otherwise());
    if (!values_.has_every_string && pool.is_empty(out)) return std::nullopt;
  }
  return mark.empty() ? out : without_mark(grammar_, out, mark);
}

std::optional<Expr> BareValues::json(uint8_t types) {
  // Where there are no strings the reader takes any JSON.
  if ((types_ & kStringBit) != 0 || types != kAllBits) types &= types_ & some_;
  if (types == 0) return std::nullopt;
  return json_of(grammar_, tool_, with_types(schema_, types), /*only_object=*/false,
                 json_options(false));
}

uint8_t BareValues::types_beside_texts() const {
  return values_.has_every_string ? kAllBits & ~every_ : kAllBits;
}

Expr BareValues::texts_or_json(const std::string& mark) {
  std::vector<Expr> forms;
  const std::optional<Regex> strings = texts(/*is_told=*/false, mark);
  if (strings) forms.push_back(grammar_.terminal(*strings));
  const std::optional<Expr> others = json(strings ? types_beside_texts() : uint8_t{kAllBits});
  if (others) forms.push_back(*others);
  if (!forms.empty()) return grammar_.either(forms);
  refuse_if_strict();
  const Regex any = grammar_.regex().any_text();
  return grammar_.terminal(mark.empty() ? any : without_mark(grammar_, any, mark));
}

void BareValues::refuse_if_strict() const {
  if (!tool_.strict) return;
  throw Error(Code::kUnsupported,
              fmt::format("tool {}: {}: can't be enforced in the notation of this model, which "
                          "writes texts without quotes: each would be read as another value",
                          tool_.name, place_in(tool_, part_)));
}

Regex without_mark(Grammar& grammar, Regex texts, const std::string& mark) {
  RegexPool& pool = grammar.regex();
  return pool.without(texts, pool.concat({pool.any_text(), pool.literal(mark), pool.any_text()}));
}

}  // namespace tgi::dialect
