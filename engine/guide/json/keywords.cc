#include "engine/guide/json/keywords.h"

#include <algorithm>
#include <string>

#include "base/word_distance.h"

namespace tgi::guide {
namespace {

using Use = KeywordRow::Use;

constexpr std::string_view kNoKeyword = "is no keyword of JSON Schema";
constexpr std::string_view kOfAjv = "is of ajv, and no keyword of JSON Schema";

constexpr KeywordRow kRows[] = {
    {"$ref", Use::kEnforced},
    {"$dynamicRef", Use::kEnforced, Draft::k2020},
    {"type", Use::kEnforced},
    {"nullable", Use::kEnforced},  // OpenAPI 3.0
    {"enum", Use::kEnforced},
    {"const", Use::kEnforced},
    {"allOf", Use::kEnforced},
    {"anyOf", Use::kEnforced},
    {"oneOf", Use::kEnforced},
    {"discriminator", Use::kEnforced},  // OpenAPI
    {"not", Use::kEnforced},
    {"if", Use::kEnforced},
    {"then", Use::kEnforced},
    {"else", Use::kEnforced},
    {"properties", Use::kEnforced},
    {"patternProperties", Use::kEnforced},
    {"additionalProperties", Use::kEnforced},
    {"propertyNames", Use::kEnforced},
    {"required", Use::kEnforced},
    {"minProperties", Use::kEnforced},
    {"maxProperties", Use::kEnforced},
    {"dependencies", Use::kEnforced},
    {"dependentRequired", Use::kEnforced, Draft::k2019},
    {"dependentSchemas", Use::kEnforced, Draft::k2019},
    {"unevaluatedProperties", Use::kEnforced, Draft::k2019},
    {"items", Use::kEnforced},
    {"additionalItems", Use::kEnforced},
    {"prefixItems", Use::kEnforced, Draft::k2020},
    {"contains", Use::kEnforced},
    {"minContains", Use::kEnforced, Draft::k2019},
    {"maxContains", Use::kEnforced, Draft::k2019},
    {"minItems", Use::kEnforced},
    {"maxItems", Use::kEnforced},
    {"uniqueItems", Use::kEnforced},
    {"unevaluatedItems", Use::kEnforced, Draft::k2019},
    {"minLength", Use::kEnforced},
    {"maxLength", Use::kEnforced},
    {"pattern", Use::kEnforced},
    {"format", Use::kEnforced},
    {"minimum", Use::kEnforced},
    {"maximum", Use::kEnforced},
    {"exclusiveMinimum", Use::kEnforced},
    {"exclusiveMaximum", Use::kEnforced},
    {"ge", Use::kEnforced},  // pydantic's, where a type has a validator or is one of several
    {"gt", Use::kEnforced},
    {"le", Use::kEnforced},
    {"lt", Use::kEnforced},
    {"multipleOf", Use::kEnforced},
    {"$schema", Use::kDescribes},
    {"$id", Use::kDescribes},
    {"id", Use::kDescribes},
    {"$anchor", Use::kDescribes},
    {"$dynamicAnchor", Use::kDescribes},
    {"$defs", Use::kDescribes},
    {"definitions", Use::kDescribes},
    {"$comment", Use::kDescribes},
    {"$vocabulary", Use::kDescribes},
    {"title", Use::kDescribes},
    {"description", Use::kDescribes},
    {"default", Use::kDescribes},
    {"example", Use::kDescribes},
    {"examples", Use::kDescribes},
    {"deprecated", Use::kDescribes},
    {"readOnly", Use::kDescribes},
    {"writeOnly", Use::kDescribes},
    {"contentEncoding", Use::kDescribes},
    {"contentMediaType", Use::kDescribes},
    {"contentSchema", Use::kDescribes},
    {"externalDocs", Use::kDescribes},
    {"xml", Use::kDescribes},
    {"strict", Use::kDescribes},  // OpenAI's, beside a schema of a function
    {"$recursiveRef", Use::kRefused, Draft::k7, "depends on the way to it; write $ref"},
    {"$recursiveAnchor", Use::kRefused, Draft::k7, "depends on the way to it; write $anchor"},
    {"extends", Use::kRefused, Draft::k7, "is of draft 3; write allOf"},
    {"disallow", Use::kRefused, Draft::k7, "is of draft 3; write not"},
    {"divisibleBy", Use::kRefused, Draft::k7, "is of draft 3; write multipleOf"},
    // What other programs, and people, write for limits of values.
    {"min", Use::kRefused, Draft::k7, kNoKeyword, "minimum, minLength, minItems or minProperties"},
    {"max", Use::kRefused, Draft::k7, kNoKeyword, "maximum, maxLength, maxItems or maxProperties"},
    {"minValue", Use::kRefused, Draft::k7, kNoKeyword, "minimum"},
    {"maxValue", Use::kRefused, Draft::k7, kNoKeyword, "maximum"},
    {"inclusiveMinimum", Use::kRefused, Draft::k7, kNoKeyword, "minimum"},
    {"inclusiveMaximum", Use::kRefused, Draft::k7, kNoKeyword, "maximum"},
    {"minLen", Use::kRefused, Draft::k7, kNoKeyword, "minLength"},
    {"maxLen", Use::kRefused, Draft::k7, kNoKeyword, "maxLength"},
    {"minimumLength", Use::kRefused, Draft::k7, kNoKeyword, "minLength"},
    {"maximumLength", Use::kRefused, Draft::k7, kNoKeyword, "maxLength"},
    {"minSize", Use::kRefused, Draft::k7, kNoKeyword, "minLength, minItems or minProperties"},
    {"maxSize", Use::kRefused, Draft::k7, kNoKeyword, "maxLength, maxItems or maxProperties"},
    {"exclusiveMin", Use::kRefused, Draft::k7, kNoKeyword, "exclusiveMinimum"},
    {"exclusiveMax", Use::kRefused, Draft::k7, kNoKeyword, "exclusiveMaximum"},
    {"lowerBound", Use::kRefused, Draft::k7, kNoKeyword, "minimum"},
    {"upperBound", Use::kRefused, Draft::k7, kNoKeyword, "maximum"},
    {"gte", Use::kRefused, Draft::k7, kNoKeyword, "minimum"},
    {"lte", Use::kRefused, Draft::k7, kNoKeyword, "maximum"},
    {"typ", Use::kRefused, Draft::k7, kNoKeyword, "type"},
    {"choices", Use::kRefused, Draft::k7, kNoKeyword, "enum"},
    {"allowedValues", Use::kRefused, Draft::k7, kNoKeyword, "enum"},
    {"additionalProps", Use::kRefused, Draft::k7, kNoKeyword, "additionalProperties"},
    {"patternProps", Use::kRefused, Draft::k7, kNoKeyword, "patternProperties"},
    {"constant", Use::kRefused, Draft::k7, kNoKeyword, "const"},
    {"ref", Use::kRefused, Draft::k7, kNoKeyword, "$ref"},
    {"regex", Use::kRefused, Draft::k7, kNoKeyword, "pattern"},
    {"regexp", Use::kRefused, Draft::k7, kOfAjv, "pattern"},
    {"range", Use::kRefused, Draft::k7, kOfAjv, "minimum and maximum"},
    {"exclusiveRange", Use::kRefused, Draft::k7, kOfAjv, "exclusiveMinimum and exclusiveMaximum"},
    {"formatMinimum", Use::kRefused, Draft::k7, kOfAjv, "pattern"},
    {"formatMaximum", Use::kRefused, Draft::k7, kOfAjv, "pattern"},
    {"formatExclusiveMinimum", Use::kRefused, Draft::k7, kOfAjv, "pattern"},
    {"formatExclusiveMaximum", Use::kRefused, Draft::k7, kOfAjv, "pattern"},
    {"typeof", Use::kRefused, Draft::k7, kOfAjv, "type"},
    {"instanceof", Use::kRefused, Draft::k7, kOfAjv, "type"},
    {"uniqueItemProperties", Use::kRefused, Draft::k7, kOfAjv, "uniqueItems"},
    {"allRequired", Use::kRefused, Draft::k7, kOfAjv, "required"},
    {"anyRequired", Use::kRefused, Draft::k7, kOfAjv, "anyOf with required"},
    {"oneRequired", Use::kRefused, Draft::k7, kOfAjv, "oneOf with required"},
    {"patternRequired", Use::kRefused, Draft::k7, kOfAjv, "required"},
    {"prohibited", Use::kRefused, Draft::k7, kOfAjv, "false in properties"},
    {"deepProperties", Use::kRefused, Draft::k7, kOfAjv, "properties"},
    {"deepRequired", Use::kRefused, Draft::k7, kOfAjv, "required"},
    {"selectCases", Use::kRefused, Draft::k7, kOfAjv, "oneOf"},
    {"optionalProperties", Use::kRefused, Draft::k7, "is of JSON Type Definition", "properties"},
    {"bsonType", Use::kRefused, Draft::k7, "is of MongoDB", "type"},
};

bool may_mean(std::string_view name, std::string_view keyword) {
  constexpr size_t kShort = 5;
  constexpr size_t kLong = 12;
  constexpr size_t kShortest = 4;  // "note" is not "not"
  if (name == keyword) return true;
  if (keyword.size() < kShortest || name.empty() || name[0] != keyword[0]) return false;
  const std::string plural(std::string(keyword) + "s");
  const bool is_singular =
      keyword == std::string(name) + "s" ||
      (keyword.ends_with("ies") && keyword.size() == name.size() + 2 && name.ends_with("y") &&
       keyword.starts_with(name.substr(0, name.size() - 1)));
  const bool is_plural_of_y =
      keyword.ends_with("ies") && name.ends_with("ys") &&
      keyword.substr(0, keyword.size() - 3) == name.substr(0, name.size() - 2);
  if (name == plural || is_singular || is_plural_of_y) return true;
  if (keyword.size() <= kShort && name.size() != keyword.size()) return false;
  return word_distance(name, keyword) <= (keyword.size() >= kLong ? 2U : 1U);
}

// "_format", "//pattern" and the like are taken out by who wrote them, "@type" is of JSON-LD.
bool begins_as_keyword(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && (is_letter(name[0]) || name[0] == '$');
}

const KeywordRow* find_row(std::string_view key) {
  for (const KeywordRow& row : kRows) {
    if (row.name == key) return &row;
  }
  // Limits are written with hyphens and underscores, too.
  if (!begins_as_keyword(key)) return nullptr;
  for (const KeywordRow& row : kRows) {
    if (row.why == kNoKeyword && bare_name(row.name) == bare_name(key)) return &row;
  }
  return nullptr;
}

// Whether it is an object that limits something.
bool limits_values(const OrderedJson& json) {
  return json.is_object() && std::ranges::any_of(json.items(), [](const auto& member) {
           const KeywordRow* const row = find_row(member.key());
           return row != nullptr && row->use == Use::kEnforced;
         });
}

// A schema within something else, or a list of members alone: nothing at all would be enforced.
void refuse_wrapper(const SchemaPlace& schema) {
  std::string unknown;
  for (auto member = schema.json->begin(); member != schema.json->end(); ++member) {
    const KeywordRow* const row = find_row(member.key());
    if (row != nullptr && row->use == Use::kEnforced) return;
    const bool is_unknown =
        row == nullptr && begins_as_keyword(member.key()) && !member.key().starts_with("x-");
    if (is_unknown && limits_values(*member) && unknown.empty()) unknown = member.key();
  }
  if (unknown.empty()) return;
  refuse_schema(path_step(schema.path, unknown),
                "\"" + unknown +
                    "\" is no keyword of JSON Schema, and none stands beside it, so any JSON "
                    "would do; give the schema itself, with its members in \"properties\"");
}

}  // namespace

std::string_view misspelt_keyword(std::string_view name) {
  if (!begins_as_keyword(name)) return {};
  const std::string letters = bare_name(name);
  for (const KeywordRow& row : kRows) {
    if (row.use == Use::kEnforced && may_mean(letters, bare_name(row.name))) return row.name;
  }
  return {};
}

std::span<const KeywordRow> keyword_rows() {
  return kRows;
}

void check_keywords(const SchemaPlace& schema) {
  for (auto member = schema.json->begin(); member != schema.json->end(); ++member) {
    const std::string& key = member.key();
    if (key.starts_with("x-")) continue;
    const KeywordRow* const row = find_row(key);
    const std::string at = path_step(schema.path, key);
    if (row == nullptr) {
      const std::string_view meant = misspelt_keyword(key);
      if (meant.empty()) continue;
      refuse_schema(at, "\"" + key +
                            "\" is no keyword of JSON Schema, so it would change nothing; "
                            "write \"" +
                            std::string(meant) +
                            "\" if that is meant, else take it out or "
                            "begin its name with \"x-\"");
    }
    if (row->use == Use::kRefused) {
      const std::string instead(row->instead);
      refuse_schema(at, "\"" + key + "\" " + std::string(row->why) +
                            (instead.empty() ? ""
                                             : ", so it would change nothing; write " + instead +
                                                   ", or begin its name with \"x-\" when it is "
                                                   "a hint for another program"));
    }
    if (row->since > schema.draft) {
      refuse_schema(at, "\"" + key + "\" is newer than the dialect \"" + schema.dialect +
                            "\" that $schema names, where it has no effect");
    }
  }
  if (schema.path == "#") refuse_wrapper(schema);
}

}  // namespace tgi::guide
