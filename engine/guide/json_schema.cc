#include "engine/guide/json_schema.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

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

Rule add_any_json(Grammar& grammar, bool only_object, const JsonSchemaOptions& options) {
  AnyJson json(grammar, options);
  const Rule rule = grammar.declare("json");
  grammar.define(rule, only_object ? json.object() : json.value());
  return rule;
}

}  // namespace tgi::guide
