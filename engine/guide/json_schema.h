// JSON Schema (2020-12 and draft 7) as a grammar of the JSON texts that satisfy it.
//
// Properties come in the order of the schema, those that only patternProperties and
// additionalProperties know after them; their names may come twice. Integers are written without a
// point: 1, not 1.0, which JSON Schema takes for an integer too. `format` is enforced. What a
// grammar cannot enforce is refused with its path in the schema ("#/properties/age/not"), never
// ignored: docs/guidance.md has the list. Source: json-schema.org, draft 2020-12 core and
// validation; RFC 8259 for the texts.
//
// How: engine/guide/json reads a schema into alternatives, each a type with the limits of its
// values (engine/guide/json/value_sets.h), so that allOf is "and", anyOf "or", and not a complement
// of sets; these become rules, one for each set of schemas that a value has to satisfy.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/guide/grammar.h"

namespace tgi::guide {

struct JsonSchemaOptions {
  enum class Whitespace {
    kCompact,   // none
    kSpaced,    // a blank between tokens, or none: as most models were trained
    kFlexible,  // between tokens, at most kMaxWhitespace characters at a time
  };
  Whitespace whitespace = Whitespace::kCompact;
  // Objects whose schema names properties, or patterns of their names, and says nothing of others
  // get no others, although JSON Schema would let them: whoever asks for {name, age} wants these. A
  // text of the language still satisfies the schema. For the same reason a schema that describes
  // members or items and has no `type` is one of objects or of arrays, and members that only the
  // other branches of a oneOf name are left out.
  bool closes_objects = false;
  // Values in Python's notation: True, False and None for true, false and null, strings in either
  // quotes.
  bool python_words = false;
  static constexpr int32_t kMaxWhitespace = 20;
};

// The rule of a JSON text that satisfies `schema` (an object or a boolean; the order of its keys
// counts). Throws kUnsupported for what cannot be enforced, kInvalidArgument for what is no schema
// or cannot be satisfied; each with the path.
Rule add_json_schema(Grammar& grammar,
                     const nlohmann::ordered_json& schema,
                     const JsonSchemaOptions& options = {});

// What a schema allows, for notations that write texts without quotes: its strings apart from the
// values of other types.
struct SchemaValues {
  struct Type {
    std::string_view word;  // JSON Schema's; integers are "number"
    bool is_every = false;  // every value of the type
  };
  std::vector<Type> others;  // types of which there are values, but for strings
  Regex strings;             // the strings themselves, not their texts in JSON
  bool has_strings = false;
  bool has_every_string = false;
};
// Throws as add_json_schema() does, but not where there is no value.
SchemaValues schema_values(RegexPool& pool, const nlohmann::ordered_json& schema);

// Any JSON value (`json_object`: an object).
Rule add_any_json(Grammar& grammar, bool only_object, const JsonSchemaOptions& options = {});

}  // namespace tgi::guide
