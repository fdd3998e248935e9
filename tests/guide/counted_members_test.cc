// Members of any name that are counted, or of which one has to be of a kind: random schemas, and
// all objects of a few members, against the definition of the keywords; their names differ.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/json_schema.h"
#include "tests/catch.h"
#include "tests/guide/byte_matcher.h"
#include "tests/guide/json_writings.h"
#include "tests/guide/naive_recogniser.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace counted_members {

using Json = nlohmann::ordered_json;

const char* const kNames[] = {"a", "ab", "b", "x"};

bool has_type(const Json& value, const Json& schema) {
  return schema == Json::object() || (value.is_string() == (schema["type"] == "string"));
}

// Of a schema as below, without its `not`.
bool satisfies(const Json& value, const Json& schema) {
  const size_t most = schema.value("maxProperties", 99U);
  if (value.size() < schema.value("minProperties", 0U) || value.size() > most) return false;
  const Json required = schema.value("required", Json::array());
  for (const Json& name : required) {
    if (!value.contains(name.get<std::string>())) return false;
  }
  const Json properties = schema.value("properties", Json::object());
  const Json patterns = schema.value("patternProperties", Json::object());
  for (const auto& [name, member] : value.items()) {
    bool is_known = false;
    for (const auto& [known, part] : properties.items()) {
      if (known != name) continue;
      is_known = true;
      if (!has_type(member, part)) return false;
    }
    for (const auto& [pattern, part] : patterns.items()) {
      if (name[0] != pattern[1]) continue;
      is_known = true;
      if (!has_type(member, part)) return false;
    }
    const Json others = schema.value("additionalProperties", Json(true));
    if (is_known || others == Json(true)) continue;
    if (others == Json(false) || !has_type(member, others)) return false;
  }
  return true;
}

Json random_schema(std::mt19937& random) {
  const auto type = [&] {
    return random() % 3 == 0 ? Json::object()
                             : Json{{"type", random() % 2 == 0 ? "string" : "integer"}};
  };
  const auto part = [&] {
    Json schema = Json::object();
    if (random() % 2 == 0) schema["properties"]["a"] = type();
    if (random() % 4 == 0) schema["properties"]["b"] = type();
    if (random() % 2 == 0) schema["patternProperties"]["^a"] = type();
    if (random() % 4 == 0) schema["patternProperties"]["^x"] = type();
    if (random() % 2 == 0)
      schema["additionalProperties"] = random() % 3 == 0 ? Json(random() % 2 == 0) : type();
    return schema;
  };
  Json schema = part();
  schema["type"] = "object";
  if (random() % 3 == 0) schema["required"] = {"b"};
  if (random() % 2 == 0) schema["minProperties"] = random() % 4;
  if (random() % 3 == 0) schema["maxProperties"] = schema.value("minProperties", 0U) + random() % 3;
  if (random() % 2 == 0) {
    schema["not"] = part();
    if (random() % 2 == 0) schema["not"]["maxProperties"] = random() % 3;
  }
  return schema;
}

std::vector<Json> objects() {
  std::vector<Json> all{Json::object()};
  for (const char* name : kNames) {
    const size_t size = all.size();
    for (size_t i = 0; i < size; ++i) {
      for (const Json& value : {Json("s"), Json(7)}) {
        all.push_back(all[i]);
        all.back()[name] = value;
      }
    }
  }
  return all;
}

bool is_empty(const std::string& refusal) {
  return refusal.find("no value satisfies") != std::string::npos;
}

TEST_CASE("members that are counted are those of the definition") {
  std::mt19937 random(12);
  const std::vector<Json> all = objects();
  int num_made = 0;
  for (int i = 0; i < 80; ++i) {
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
    INFO(refusal);
    if (!made && !is_empty(refusal)) {
      CHECK(refusal.find("have different names cannot be enforced") != std::string::npos);
      continue;
    }
    for (const Json& object : all) {
      const bool is_valid = satisfies(object, schema) &&
                            !(schema.contains("not") && satisfies(object, schema["not"]));
      const std::vector<std::string> texts = json_writings(object);
      const bool is_written = made && std::ranges::any_of(texts, [&](const std::string& text) {
                                return accepts_bytes(made, text);
                              });
      if (is_written != is_valid)
        FAIL_CHECK(object.dump() << (is_valid ? " is not" : " is") << " written");
    }
  }
  CHECK(num_made > 50);
}

TEST_CASE(
    "an object is not closed to others when its properties can't make up the fewest members") {
  const auto closed = [](const char* schema) {
    Grammar grammar;
    grammar.set_start(add_json_schema(grammar, Json::parse(schema), {.closes_objects = true}));
    return compile_grammar(grammar);
  };
  const auto needs_others = closed(
      R"({"type":"object","minProperties":2,"properties":{"a":{"type":"null"},"b":{"allOf":[{"type":"string"},{"type":"null"}]},
          "c":{"not":{}}}})");
  CHECK(accepts_bytes(needs_others, R"({"a":null,"d":1})"));
  CHECK_FALSE(accepts_bytes(needs_others, R"({"a":null,"b":null})"));
  CHECK_FALSE(accepts_bytes(needs_others, R"({"a":null})"));
  const auto has_enough = closed(
      R"({"type":"object","minProperties":2,"properties":{"a":{"type":"null"},"b":{"type":"string"}}})");
  CHECK(accepts_bytes(has_enough, R"({"a":null,"b":""})"));
  CHECK_FALSE(accepts_bytes(has_enough, R"({"a":null,"b":"","d":1})"));
}

TEST_CASE("names of counted members differ whatever they are cut into") {
  const char* const schemas[] = {
      R"({"type":"object","minProperties":3})",
      R"({"type":"object","minProperties":2,"maxProperties":4,"additionalProperties":{"type":"integer"}})",
      R"({"type":"object","minProperties":3,"patternProperties":{"^[ab]*$":{"type":"object","minProperties":2}},
          "additionalProperties":false})",
      R"({"type":"object","minProperties":3,"properties":{"a":{"type":"null"}},"not":{"additionalProperties":{"type":"integer"}},
          "patternProperties":{"^b":{"type":"boolean"}}})",
  };
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* token :
       {"\":1,\"",  "\":1,\"a\":",    "a\":1,\"a",    "\"a\":1,\"a\":1", "{\"a",  "{\"a\":",
        "\":",      "\",\"",          "a\":\"b\",\"", "\":{\"a\":1,\"",  "1},\"", "}},\"a\":",
        "true,\"b", "\":true,\"b\":", "\\n",          "\\u000a",         "\\u00", "0a\":",
        "ab\":",    "b\":",           "\":{}"})
    tokens.emplace_back(token);
  const auto vocabulary = vocabulary_of(tokens);
  const auto check_names = [](const std::string& text) {
    std::vector<std::vector<std::string>> open;
    bool is_right = true;
    [[maybe_unused]] const nlohmann::json whole =
        nlohmann::json::parse(text, [&](int, auto event, nlohmann::json& value) {
          using Event = nlohmann::json::parse_event_t;
          if (event == Event::object_start) open.emplace_back();
          if (event == Event::object_end) open.pop_back();
          if (event != Event::key || open.size() > 1) return true;
          is_right = is_right && std::ranges::count(open.back(), value.get<std::string>()) == 0;
          open.back().push_back(value);
          return true;
        });
    return is_right;
  };
  for (const char* schema : schemas) {
    CAPTURE(schema);
    Grammar grammar;
    grammar.set_start(add_json_schema(grammar, Json::parse(schema)));
    NaiveRecogniser naive(grammar);
    const auto made = compile_grammar(grammar);
    std::mt19937 random(8);
    for (int64_t extra = 0; extra < 60; ++extra) {
      Matcher matcher(made, vocabulary);
      std::string text;
      bool ended = false;
      for (int64_t budget = matcher.min_tokens_to_end() + extra; !ended && budget > 0; --budget) {
        const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary->size(), budget);
        INFO("after " << text);
        REQUIRE_FALSE(ids.empty());
        int32_t next = ids[random() % ids.size()];
        for (int tries = 0; tries < 5; ++tries) {
          const int32_t other = ids[random() % ids.size()];
          if (vocabulary->bytes(other).size() > vocabulary->bytes(next).size()) next = other;
        }
        REQUIRE(matcher.allows(next));
        REQUIRE(matcher.accept(next));
        text += vocabulary->bytes(next);
        ended = vocabulary->is_end_token(next);
      }
      INFO(text);
      REQUIRE(matcher.can_end());
      CHECK(check_names(text));
      CHECK(naive.accepts(text));
    }
  }
}

}  // namespace counted_members
}  // namespace tgi::guide
