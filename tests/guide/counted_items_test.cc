// Items that differ and are counted: random schemas, and all short arrays of a few values, against
// the definition of the keywords.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/json_schema.h"
#include "tests/catch.h"
#include "tests/guide/byte_matcher.h"

namespace tgi::guide {
namespace counted_items {

using Json = nlohmann::ordered_json;

const Json kValues = Json::parse(R"(["a", "ab", "b", 1, 2, null])");
// Few values, many, any.
const Json kKinds = Json::parse(R"([{"enum": ["a", 1]}, {"enum": ["a", "b", 2, null]},
    {"type": "string"}, {"type": "integer"}, {"type": "string", "pattern": "^a"}, {}, {"const": "a"},
    {"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}])");

// Of the keywords above.
bool satisfies(const Json& value, const Json& kind) {
  if (kind.contains("const") && value != kind["const"]) return false;
  if (kind.contains("enum") && std::count(kind["enum"].begin(), kind["enum"].end(), value) == 0)
    return false;
  if (kind.contains("pattern") && (!value.is_string() || value.get<std::string>()[0] != 'a'))
    return false;
  if (!kind.contains("type")) return true;
  const Json types = kind["type"].is_array() ? kind["type"] : Json::array({kind["type"]});
  const std::string type = value.is_string() ? "string" : value.is_null() ? "null" : "integer";
  return std::count(types.begin(), types.end(), Json(type)) > 0;
}

bool is_valid(const Json& items, const Json& schema) {
  const Json prefix = schema.value("prefixItems", Json::array());
  for (size_t i = 0; i < items.size(); ++i) {
    if (std::count(items.begin(), items.end(), items[i]) > 1) return false;
    if (!satisfies(items[i], i < prefix.size() ? prefix[i] : schema["items"])) return false;
  }
  for (const Json& part : schema["allOf"]) {
    const auto found = std::count_if(items.begin(), items.end(), [&](const Json& item) {
      return satisfies(item, part["contains"]);
    });
    if (found < part["minContains"].get<int>() || found > part.value("maxContains", 99))
      return false;
  }
  return items.size() >= schema["minItems"].get<size_t>() &&
         items.size() <= schema.value("maxItems", 99U);
}

Json random_schema(std::mt19937& random) {
  const auto kind = [&] { return kKinds[random() % kKinds.size()]; };
  Json schema{{"type", "array"}, {"uniqueItems", true}, {"items", kind()}};
  schema["minItems"] = random() % 3;
  if (random() % 3 == 0) schema["maxItems"] = 2 + random() % 3;
  for (size_t i = random() % 3; i > 0 && random() % 2 == 0; --i)
    schema["prefixItems"].push_back(kind());
  for (size_t i = 1 + random() % 2; i > 0; --i) {
    Json part{{"contains", kind()}, {"minContains", random() % 3}};
    if (random() % 2 == 0) part["maxContains"] = part["minContains"].get<int>() + random() % 2;
    schema["allOf"].push_back(part);
  }
  return schema;
}

void for_each_array(size_t longest, Json& items, const auto& visit) {
  visit(items);
  if (items.size() == longest) return;
  for (const Json& value : kValues) {
    items.push_back(value);
    for_each_array(longest, items, visit);
    items.erase(items.size() - 1);
  }
}

TEST_CASE("items that differ and are counted are those of the definition") {
  std::mt19937 random(11);
  int num_made = 0;
  for (int i = 0; i < 60; ++i) {
    const Json schema = random_schema(random);
    INFO(schema.dump());
    std::shared_ptr<const CompiledGrammar> made;
    std::string refusal;
    try {
      Grammar grammar;
      grammar.set_start(add_json_schema(grammar, schema));
      made = compile_grammar(grammar);
      ++num_made;
    } catch (const Error& error) {
      refusal = error.what();
    }
    const bool is_empty = refusal.find("no value satisfies") != std::string::npos;
    Json items = Json::array();
    for_each_array(3, items, [&](const Json& array) {
      if (!made && !is_empty) return;
      const bool is_right = (made && accepts_bytes(made, array.dump())) == is_valid(array, schema);
      if (!is_right)
        FAIL_CHECK(array.dump() << (is_valid(array, schema) ? " is not" : " is") << " written");
    });
    if (!made && !is_empty) {
      INFO(refusal);
      CHECK(refusal.find("values that have to come may be used up") != std::string::npos);
    }
  }
  CHECK(num_made > 35);
}

// Each place has a state, and all of them have few rules of items: the steps are bounded.
TEST_CASE("long arrays whose items differ and are counted are followed") {
  Grammar grammar;
  grammar.set_start(add_json_schema(grammar, Json::parse(R"({"type":"array","uniqueItems":true,
      "items":{"type":"string"},"contains":{"enum":["k","l"]},"minContains":2,"minItems":5,"maxItems":60})")));
  const auto made = compile_grammar(grammar);
  int num_items = 0;
  for (const Grammar::RuleEntry& rule : grammar.rules())
    num_items += static_cast<int>(rule.list >= 0);
  CHECK(num_items < 12);
  Json items = Json::array({"k"});
  for (int i = 0; i < 58; ++i) items.push_back("s" + std::to_string(i % 58));
  CHECK_FALSE(accepts_bytes(made, items.dump()));
  items.push_back("l");
  CHECK(accepts_bytes(made, items.dump()));
  items.push_back("m");
  CHECK_FALSE(accepts_bytes(made, items.dump()));
}

}  // namespace counted_items
}  // namespace tgi::guide
