#include "engine/dialect/arguments_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/guide/compiled_grammar.h"
#include "engine/guide/json_schema.h"
#include "engine/guide/regex.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::JsonSchemaOptions;
using guide::Regex;
using guide::Rule;

constexpr std::string_view kRootId = "tool:/parameters";

JsonSchemaOptions json_options(bool python) {
  JsonSchemaOptions out{.closes_objects = true};
  out.whitespace = JsonSchemaOptions::Whitespace::kSpaced;
  out.python_words = python;
  return out;
}

// Whether the schema can be enforced; throws why not when the tool is strict. Tried in a grammar of
// its own, as one that was begun can't be taken back.
bool is_enforceable(const Tool& tool, const OrderedJson& schema, const JsonSchemaOptions& options) {
  try {
    Grammar trial;
    trial.set_start(add_json_schema(trial, schema, options));
    (void)compile_grammar(trial);
    return true;
  } catch (const Error& error) {
    if (tool.strict || error.code() == Code::kInternal) {
      throw error.in(fmt::format("tool {}", tool.name));
    }
    return false;
  }
}

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

// "#/properties/NAME" as a reference into the tool's schema.
std::string reference_to(std::string_view property) {
  std::string out = fmt::format("{}#/properties/", kRootId);
  for (const char c : property) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else if (is_plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

// The schema of one property, in which references into the whole still lead somewhere.
OrderedJson property_schema(const Tool& tool, std::string_view property) {
  OrderedJson root = tool.parameters;
  OrderedJson out = OrderedJson::object();
  if (root.contains("$schema")) {
    out["$schema"] = root["$schema"];
    root.erase("$schema");
  }
  root["$id"] = kRootId;
  out["$defs"] = {{"parameters", std::move(root)}};
  out["$ref"] = reference_to(property);
  return out;
}

// What satisfies the schema; any JSON (`only_object`: an object) where it can't be enforced.
Expr json_of(Grammar& grammar,
             const Tool& tool,
             const OrderedJson& schema,
             bool only_object,
             const JsonSchemaOptions& options) {
  return grammar.call(is_enforceable(tool, schema, options)
                          ? add_json_schema(grammar, schema, options)
                          : add_any_json(grammar, only_object, options));
}

Expr property_json(Grammar& grammar, const Tool& tool, std::string_view property, bool python) {
  return json_of(grammar, tool, property_schema(tool, property), /*only_object=*/false,
                 json_options(python));
}

struct Property {
  std::string name{};
  std::string path{};  // "#/properties/NAME"
  const OrderedJson* schema = nullptr;
  bool is_required = false;
};

// What a list of properties can't say is refused of a strict tool.
std::vector<Property> properties_of(const Tool& tool) {
  constexpr std::array<std::string_view, 12> kKnown = {
      "type",    "properties",  "required",    "additionalProperties",
      "$defs",   "definitions", "description", "title",
      "$schema", "$id",         "$comment",    "strict"};
  if (tool.strict) {
    for (const auto& item : tool.parameters.items()) {
      if (std::find(kKnown.begin(), kKnown.end(), item.key()) != kKnown.end()) continue;
      throw Error(Code::kUnsupported,
                  fmt::format("tool {}: #/{}: this model writes arguments one by one; what is said "
                              "of all of them together can't be enforced",
                              tool.name, item.key()));
    }
  }
  std::vector<Property> out;
  const auto properties = tool.parameters.find("properties");
  if (properties == tool.parameters.end() || !properties->is_object()) return out;
  const auto required = tool.parameters.find("required");
  for (const auto& item : properties->items()) {
    const bool is_required =
        required != tool.parameters.end() && required->is_array() &&
        std::find(required->begin(), required->end(), OrderedJson(item.key())) != required->end();
    out.push_back({.name = item.key(),
                   .path = "#/properties/" + item.key(),
                   .schema = &item.value(),
                   .is_required = is_required});
  }
  return out;
}

bool takes_others(const Tool& tool) {
  const auto others = tool.parameters.find("additionalProperties");
  return others != tool.parameters.end() && (others->is_object() || *others == OrderedJson(true));
}

Regex without_mark(Grammar& grammar, Regex texts, const std::string& mark) {
  guide::RegexPool& pool = grammar.regex();
  return pool.without(texts, pool.concat({pool.any_text(), pool.literal(mark), pool.any_text()}));
}

// The texts that are values of a string, as they are, not as JSON.
Regex bare_texts(Grammar& grammar, const Tool& tool, const Property& property) {
  guide::RegexPool& pool = grammar.regex();
  const OrderedJson* schema = behind_references(*property.schema, tool.parameters);
  if (schema == nullptr) schema = property.schema;
  Regex out = pool.any_text();
  if (!schema->is_object()) return out;
  for (const auto& item : schema->items()) {
    const std::string& word = item.key();
    const OrderedJson& value = item.value();
    if (word == "enum" || word == "const") {
      std::vector<Regex> texts;
      for (const OrderedJson& each : word == "enum" ? value : OrderedJson::array({value})) {
        if (each.is_string()) texts.push_back(pool.literal(each.get<std::string>()));
      }
      out = pool.both(out, pool.either(texts));
    } else if ((word == "minLength" || word == "maxLength") && value.is_number_unsigned()) {
      const auto count = static_cast<int32_t>(std::min<uint64_t>(value.get<uint64_t>(), 100000));
      const Regex any = pool.any_character();
      out = pool.both(out, word == "minLength" ? pool.repeat(any, count, guide::kUnbounded)
                                               : pool.repeat(any, 0, count));
    } else if (word == "pattern" && value.is_string()) {
      out = pool.both(out, parse_regex(pool, value.get<std::string>(), guide::RegexUse::kSearch));
    } else if (tool.strict && word != "type" && word != "title" && word != "description" &&
               word != "default" && word != "examples" && word != "example") {
      throw Error(Code::kUnsupported,
                  fmt::format("tool {}: {}/{}: can't be enforced in the notation of "
                              "this model, which writes texts without quotes",
                              tool.name, property.path, word));
    }
  }
  return out;
}

Regex texts_of(Grammar& grammar, const Tool& tool, const Property& property) {
  if (types_of(*property.schema, tool.parameters) == kStringBit) {
    try {
      return bare_texts(grammar, tool, property);
    } catch (const Error&) {
      if (tool.strict) throw;
    }
  }
  return grammar.regex().any_text();
}

// A text as it is, without the mark that ends it.
Expr parameter_text(Grammar& grammar,
                    const Tool& tool,
                    const Property& property,
                    const std::string& close) {
  const Regex texts = texts_of(grammar, tool, property);
  return grammar.terminal(close.empty() ? texts : without_mark(grammar, texts, close));
}

// A text that stands in a section of its own where it has what would confuse its reader.
Expr sectioned_text(Grammar& grammar,
                    const Tool& tool,
                    const Property& property,
                    const CallPart& part,
                    const IsSpecialToken& is_special) {
  const Regex texts = texts_of(grammar, tool, property);
  const Regex plain = parse_regex(grammar.regex(), "[^<&\\n]*", guide::RegexUse::kWhole);
  return grammar.either(
      {grammar.terminal(grammar.regex().both(texts, plain)),
       grammar.sequence(
           {written_mark(grammar, part.section_open, is_special),
            grammar.terminal(without_mark(grammar, texts, std::string(part.section_close))),
            written_mark(grammar, part.section_close, is_special)})});
}

// What of the property's values has this type.
Expr property_json_of_type(Grammar& grammar,
                           const Tool& tool,
                           std::string_view property,
                           std::string_view type) {
  OrderedJson schema = property_schema(tool, property);
  schema["allOf"] = {{{"$ref", schema["$ref"]}}, {{"type", type}}};
  schema.erase("$ref");
  return json_of(grammar, tool, schema, /*only_object=*/false, json_options(false));
}

// One form of an argument: what stands between its name and its value, and the value.
struct ParameterForm {
  std::string middle;
  Expr value;
};

// `close`: what ends a text; empty where it is a special token.
std::vector<ParameterForm> parameter_forms(Grammar& grammar,
                                           const Tool& tool,
                                           const CallPart& part,
                                           const Property& property,
                                           const std::string& close,
                                           const IsSpecialToken& is_special) {
  const uint8_t types = types_of(*property.schema, tool.parameters);
  const std::string middle(part.middle);
  std::vector<ParameterForm> out;
  if (!part.type_close.empty()) {
    for (const TypeWord& type : kTypeWords) {
      if ((types & type.bit) == 0) continue;
      const bool is_told = types == type.bit;  // by the schema
      const Expr value = type.bit == kStringBit ? parameter_text(grammar, tool, property, close)
                         : is_told              ? property_json(grammar, tool, property.name, false)
                                   : property_json_of_type(grammar, tool, property.name, type.word);
      out.push_back({fmt::format("{}{}{}", middle, type.word, part.type_close), value});
    }
    return out;
  }
  if ((types & kStringBit) != 0) {
    out.push_back({middle, part.section_open.empty()
                               ? parameter_text(grammar, tool, property, close)
                               : sectioned_text(grammar, tool, property, part, is_special)});
  }
  // Without a mark that tells them apart, what may be a text is written as one.
  const bool is_told = !part.middle_of_json.empty() && types != kStringBit;
  if (out.empty() || is_told) {
    out.push_back({std::string(part.middle_of_json.empty() ? part.middle : part.middle_of_json),
                   property_json(grammar, tool, property.name, false)});
  }
  return out;
}

}  // namespace

Expr any_argument_name(Grammar& grammar) {
  return grammar.terminal(
      parse_regex(grammar.regex(), "[A-Za-z0-9_.-]{1,64}", guide::RegexUse::kWhole));
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

Expr json_value(Grammar& grammar, const Tool& tool, const OrderedJson& schema) {
  return json_of(grammar, tool, schema, /*only_object=*/false, json_options(false));
}

Expr property_text(Grammar& grammar,
                   const Tool& tool,
                   const std::string& path,
                   const OrderedJson& schema,
                   const std::string& close) {
  return parameter_text(grammar, tool, {.path = path, .schema = &schema}, close);
}

Expr json_arguments(Grammar& grammar, const Tool& tool) {
  return json_of(grammar, tool, object_schema(tool), /*only_object=*/true, json_options(false));
}

Expr parameter_arguments(Grammar& grammar,
                         const Tool& tool,
                         const CallPart& part,
                         const IsSpecialToken& is_special) {
  const std::vector<MarkPiece> close = pieces_of(part.close, is_special);
  const std::string close_text =
      close.empty() || close.front().is_special ? "" : close.front().text;
  const auto between_marks = [&](Expr name, std::string_view middle, Expr value) {
    const Expr line_end = grammar.text(part.on_lines ? "\n" : "");
    const Expr gap = part.value_open.empty() ? grammar.empty_text() : optional_space(grammar);
    return grammar.sequence({written_mark(grammar, part.open, is_special), name,
                             written_mark(grammar, middle, is_special), gap,
                             written_mark(grammar, part.value_open, is_special), line_end, value,
                             line_end, written_mark(grammar, part.close, is_special),
                             optional_space(grammar)});
  };
  std::vector<Expr> out = {optional_space(grammar)};
  for (const Property& property : properties_of(tool)) {
    const Expr name = grammar.text(property.name);
    std::vector<Expr> forms;
    for (const ParameterForm& form :
         parameter_forms(grammar, tool, part, property, close_text, is_special)) {
      forms.push_back(between_marks(name, form.middle, form.value));
    }
    const Expr one = grammar.either(forms);
    out.push_back(property.is_required ? one : grammar.optional(one));
  }
  if (takes_others(tool)) {
    const std::string type =
        part.type_close.empty() ? "" : fmt::format("string{}", part.type_close);
    const OrderedJson any_value = true;
    const Property any{.schema = &any_value};
    const Expr value = part.section_open.empty()
                           ? parameter_text(grammar, tool, any, close_text)
                           : sectioned_text(grammar, tool, any, part, is_special);
    const Expr other =
        between_marks(any_argument_name(grammar), std::string(part.middle) + type, value);
    out.push_back(grammar.repeat(other, 0, guide::kUnbounded));
  }
  return grammar.sequence(out);
}

Expr keyword_arguments(Grammar& grammar, const Tool& tool, const CallPart& part) {
  std::vector<ListEntry> entries;
  for (const Property& property : properties_of(tool)) {
    entries.push_back({.name = property.name,
                       .expr = grammar.sequence(
                           {grammar.text(property.name + "="),
                            property_json(grammar, tool, property.name, part.has_python_words)}),
                       .is_required = property.is_required});
  }
  return comma_list(grammar, entries, std::nullopt);
}

}  // namespace tgi::dialect
