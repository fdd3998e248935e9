#include "engine/guide/json/keywords.h"

#include <string>

namespace tgi::guide {
namespace {

using Use = KeywordRow::Use;

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
    {"discriminator", Use::kDescribes},  // OpenAPI: which branch of oneOf to look at first
    {"externalDocs", Use::kDescribes},
    {"xml", Use::kDescribes},
    {"strict", Use::kDescribes},  // OpenAI's, beside a schema of a function
    {"$recursiveRef", Use::kRefused, Draft::k7, "depends on the way to it; write $ref"},
    {"$recursiveAnchor", Use::kRefused, Draft::k7, "depends on the way to it; write $anchor"},
    {"extends", Use::kRefused, Draft::k7, "is of draft 3; write allOf"},
    {"disallow", Use::kRefused, Draft::k7, "is of draft 3; write not"},
    {"divisibleBy", Use::kRefused, Draft::k7, "is of draft 3; write multipleOf"},
};

}  // namespace

std::span<const KeywordRow> keyword_rows() {
  return kRows;
}

void check_keywords(const SchemaPlace& schema) {
  for (auto member = schema.json->begin(); member != schema.json->end(); ++member) {
    const std::string& key = member.key();
    if (key.substr(0, 2) == "x-") continue;
    const KeywordRow* row = nullptr;
    for (const KeywordRow& candidate : kRows) {
      if (candidate.name == key) row = &candidate;
    }
    const std::string at = path_step(schema.path, key);
    if (row == nullptr) {
      refuse_schema(at,
                    "\"" + key +
                        "\" is not a keyword of JSON Schema that is known here, so it "
                        "can't be enforced; take it out, or begin its name with \"x-\" when it is "
                        "a hint for another program");
    }
    if (row->use == Use::kRefused) refuse_schema(at, "\"" + key + "\" " + std::string(row->why));
    if (row->since > schema.draft) {
      refuse_schema(at, "\"" + key + "\" is newer than the dialect \"" + schema.dialect +
                            "\" that $schema names, where it has no effect");
    }
  }
}

}  // namespace tgi::guide
