#include "engine/guide/json_schema.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nlohmann_json.h"
#include "engine/guide/json/any_json.h"
#include "engine/guide/json/schema_printer.h"
#include "engine/guide/json/schema_reader.h"

namespace tgi::guide {
namespace {

// A word may also be misspelt in a definition that nothing refers to, and have no part in it.
void tell_both(const SchemaReader& reader, const Error& error) {
  try {
    reader.check_all_keywords();
  } catch (const Error& word) {
    if (std::string_view(word.what()) == error.what()) throw;
    throw Error(word.code(), std::string(word.what()) + "; besides, " + error.what());
  }
}

}  // namespace

Rule add_json_schema(Grammar& grammar,
                     const nlohmann::ordered_json& schema,
                     const JsonSchemaOptions& options) {
  if (!schema.is_object() && !schema.is_boolean()) {
    reject_schema("#", "expected a schema, an object or a boolean, got " + described_json(schema));
  }
  SchemaReader reader(grammar.regex(), schema);
  try {
    return SchemaPrinter(grammar, reader, options).print(reader.root());
  } catch (const Error& error) {
    // What is wrong with the whole may come of a word that is misspelt in a part.
    if (error.code() == Code::kInvalidArgument) tell_both(reader, error);
    throw;
  }
}

SchemaValues schema_values(RegexPool& pool, const nlohmann::ordered_json& schema) {
  constexpr std::array<std::pair<JsonType, std::string_view>, 5> kOthers = {
      {{JsonType::kNull, "null"},
       {JsonType::kBoolean, "boolean"},
       {JsonType::kNumber, "number"},
       {JsonType::kArray, "array"},
       {JsonType::kObject, "object"}}};
  SchemaReader reader(pool, schema);
  const Alternatives& all = reader.alternatives(reader.root());
  SchemaValues out;
  for (const auto& [type, word] : kOthers) {
    const auto is_it = [type = type](const Alternative& each) { return each.type == type; };
    if (std::ranges::none_of(all, is_it)) continue;
    out.others.push_back({.word = word, .is_every = std::ranges::any_of(all, [&](const auto& each) {
                                          return is_it(each) && each.is_every();
                                        })});
  }
  Strings& strings = reader.algebra().strings;
  std::vector<Regex> parts;
  for (const Alternative& each : all) {
    if (each.type != JsonType::kString) continue;
    Strings::check_exact(each.string);
    out.has_every_string = out.has_every_string || each.is_every();
    parts.push_back(strings.language_of(each.string));
  }
  out.has_strings = !parts.empty();
  out.strings = out.has_every_string ? pool.any_text() : pool.either(parts);
  return out;
}

Rule add_any_json(Grammar& grammar, bool only_object, const JsonSchemaOptions& options) {
  AnyJson json(grammar, options);
  const Rule rule = grammar.declare("json");
  grammar.define(rule, only_object ? json.object() : json.value());
  return rule;
}

}  // namespace tgi::guide
