// Arrays whose items have to differ and may have any number of values: masks against the
// definition, answers against a reader of JSON, also where tokens run out, and going back.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/different_items.h"
#include "engine/guide/json_schema.h"
#include "tests/catch.h"
#include "tests/guide/byte_matcher.h"
#include "tests/guide/naive_recogniser.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

std::shared_ptr<const CompiledGrammar> compiled(const std::string& schema,
                                                const JsonSchemaOptions& options = {}) {
  Grammar grammar;
  grammar.set_start(add_json_schema(grammar, nlohmann::ordered_json::parse(schema), options));
  return compile_grammar(grammar);
}

// Tokens that end an item and go on, with few letters, so that values come again.
std::shared_ptr<const Vocabulary> vocabulary() {
  static const auto made = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* token : {"\",\"",       "\",",         "[\"",
                              "\"]",         "a\"",         "a\",\"",
                              "a\",\"a",     "ab",          "b\",\"b\",\"",
                              "\"a\",\"a\"", "1,",          "1,1",
                              "0,1,",        ",1",          ".0",
                              ",0.",         "10,10",       "[1,",
                              "[1,1",        "1]",          "\\n",
                              "\\u00",       "0a",          "\\u000a",
                              "{\"x\":",     "{\"x\":1}",   "},{",
                              "},{\"x\":1",  "true,",       "true,false",
                              "null,null",   "[]",          "[],",
                              "],[",         "\"a\":[\"",   "\"],\"b\":[\"",
                              "\xC3",        "\xA4\",\"",   "\xC3\xA4",
                              " ",           ", ",          "\" , \"",
                              "red",         "red\",\"red", "red\",\"green\"",
                              "e10"})
      tokens.emplace_back(token);
    return vocabulary_of(tokens);
  }();
  return made;
}

void check_different(const nlohmann::json& value) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) check_different(member);
  }
  if (!value.is_array()) return;
  for (const auto& item : value) CHECK(std::count(value.begin(), value.end(), item) == 1);
}

// A token, longer ones more often: they are the ones that cross from one item to the next.
int32_t drawn(const std::vector<int32_t>& ids, std::mt19937& random) {
  int32_t next = ids[random() % ids.size()];
  for (int tries = 0; tries < 4; ++tries) {
    const int32_t other = ids[random() % ids.size()];
    if (vocabulary()->bytes(other).size() > vocabulary()->bytes(next).size()) next = other;
  }
  return next;
}

const char* const kSchemas[] = {
    R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"string","maxLength":2},"minItems":3})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^[ab]{0,3}$"},"minItems":5})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"integer"},"minItems":2,"maxItems":9})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"number","minimum":0,"maximum":12},"minItems":4})",
    R"({"type":"array","uniqueItems":true,"items":{"type":["string","integer","boolean","null"]},"minItems":3})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"x":{"type":"integer"},
        "y":{"type":"boolean"}},"required":["x"],"additionalProperties":false},"minItems":2})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"array","items":{"type":"integer","minimum":0,
        "maximum":3},"maxItems":2},"minItems":2})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"array","prefixItems":[{"type":"boolean"},
        {"type":"integer","minimum":0,"maximum":2}],"items":false,"minItems":1},"minItems":3})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"array","prefixItems":[{"type":"boolean"}],
        "items":{"type":"integer","minimum":0,"maximum":1},"maxItems":3},"minItems":2})",
    R"({"type":"array","uniqueItems":true,"prefixItems":[{"type":"string"},{"type":["string","number"]}],
        "items":{"type":"integer","minimum":0},"minItems":4})",
    R"({"type":"object","properties":{"a":{"$ref":"#/$defs/l"},"b":{"$ref":"#/$defs/l"}},
        "required":["a","b"],"additionalProperties":false,"$defs":{"l":{"type":"array","uniqueItems":true,"items":{"type":"string"},
        "minItems":2}}})",
    R"({"anyOf":[{"type":"array","uniqueItems":true,"items":{"type":"integer"}},
                 {"type":"array","uniqueItems":true,"items":{"type":["string","number"]},"minItems":3}]})",
    R"({"type":"array","uniqueItems":true,"minItems":2})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"object"},"minItems":3})",
    R"({"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"object","properties":{"x":{"type":"boolean"}},
        "required":["x"],"patternProperties":{"^[ab]":{"type":"null"}},"additionalProperties":{"type":"boolean"},"minProperties":2,
        "maxProperties":3}})",
    R"({"type":"array","uniqueItems":true,"minItems":2,"items":{"$ref":"#/$defs/t"},"$defs":{"t":{"type":"object",
        "properties":{"x":{"type":"integer"},"t":{"$ref":"#/$defs/t"}},"required":["x"]}}})",
    R"({"type":"array","uniqueItems":true,"minItems":2,"items":{"type":"array","uniqueItems":true,"minItems":1,
        "items":{"type":["string","number"]}}})",
    R"({"type":"array","uniqueItems":true,"items":{"type":"string"},"contains":{"pattern":"^[ab]"},"minContains":2})",
    R"({"type":"array","uniqueItems":true,"contains":{"enum":["a",1]},"minItems":3,"items":{"type":["string","integer"]}})",
    R"({"type":"array","uniqueItems":true,"items":{"type":["string","number"]},"contains":{"type":"number"},"minContains":2,
        "maxContains":3,"minItems":4})",
    R"({"type":"array","uniqueItems":true,"items":{"type":["string","integer"]},"allOf":[{"contains":{"type":"string"}},
        {"contains":{"enum":["a",1,2]},"minContains":2}],"prefixItems":[{"enum":["a","b"]}]})",
    R"({"type":"array","uniqueItems":true,"minItems":5,"items":{"type":"array","uniqueItems":true,"items":{"enum":["b","a",1]}}})",
};

}  // namespace

TEST_CASE("masks_of_items_that_differ_are_those_of_the_definition") {
  for (const char* schema : kSchemas) {
    for (const bool flexible : {false, true}) {
      JsonSchemaOptions options;
      if (flexible) options.whitespace = JsonSchemaOptions::Whitespace::kFlexible;
      const auto grammar = compiled(schema, options);
      CAPTURE(schema, flexible);
      std::mt19937 random(5);
      for (int walk = 0; walk < (kUnderSanitizers ? 3 : 12); ++walk) {
        Matcher matcher(grammar, vocabulary());
        std::string text;
        for (int length = 0; length < 30; ++length) {
          const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary()->size());
          std::vector<int32_t> expected;
          for (int32_t id = 0; id < vocabulary()->size(); ++id) {
            if (matcher.allows(id)) expected.push_back(id);
          }
          INFO(schema << " after " << text);
          REQUIRE(ids == expected);
          REQUIRE_FALSE(ids.empty());
          const int32_t next = drawn(ids, random);
          REQUIRE(matcher.accept(next));
          text += vocabulary()->bytes(next);
          if (vocabulary()->is_end_token(next)) break;
        }
      }
    }
  }
}

TEST_CASE("items_differ_and_the_answer_is_whole_when_tokens_run_out") {
  std::vector<std::string> schemas(std::begin(kSchemas), std::end(kSchemas));
  // What is left after the first item is longer than it.
  schemas.emplace_back(R"({"type":"array","uniqueItems":true,"items":{"enum":["a","b","ccccccc"]},
                           "prefixItems":[{"type":"string"}]})");
  for (size_t i = 0; i < 2 * schemas.size(); ++i) {
    const std::string& schema = schemas[i / 2];
    JsonSchemaOptions options;
    if (i % 2 == 1) options.whitespace = JsonSchemaOptions::Whitespace::kFlexible;
    const auto grammar = compiled(schema, options);
    std::mt19937 random(9);
    for (int64_t extra = 0; extra < 60; extra += kUnderSanitizers ? 9 : 3) {
      Matcher matcher(grammar, vocabulary());
      int64_t budget = matcher.min_tokens_to_end() + extra / 2;
      std::string text;
      bool ended = false;
      for (; !ended && budget > 0; --budget) {
        const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary()->size(), budget);
        INFO(schema << " after " << text << ", " << budget << " tokens left");
        REQUIRE_FALSE(ids.empty());
        const int32_t next = drawn(ids, random);
        REQUIRE(matcher.accept(next));
        text += vocabulary()->bytes(next);
        ended = vocabulary()->is_end_token(next);
      }
      INFO(schema << ": " << text);
      REQUIRE(matcher.can_end());
      check_different(nlohmann::json::parse(text));
    }
  }
}

TEST_CASE("going_back_in_items_that_differ_is_as_if_nothing_was") {
  for (const char* schema : kSchemas) {
    const auto grammar = compiled(schema);
    std::mt19937 random(3);
    Matcher matcher(grammar, vocabulary());
    std::vector<int32_t> tokens;
    for (int step = 0; step < 60; ++step) {
      const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary()->size());
      const int32_t next = drawn(ids, random);
      if (random() % 4 == 0 || vocabulary()->is_end_token(next)) {
        const auto back = static_cast<int32_t>(random() % (tokens.size() + 1));
        matcher.rollback(back);
        tokens.resize(tokens.size() - static_cast<size_t>(back));
        Matcher fresh(grammar, vocabulary());
        for (const int32_t token : tokens) REQUIRE(fresh.accept(token));
        REQUIRE(allowed_tokens(matcher, vocabulary()->size()) ==
                allowed_tokens(fresh, vocabulary()->size()));
        continue;
      }
      REQUIRE(matcher.accept(next));
      tokens.push_back(next);
    }
  }
}

TEST_CASE("equal_values_are_equal_however_they_are_written") {
  struct Row {
    const char* schema;
    std::vector<const char*> accepted, refused;
  };
  const Row rows[] = {
      {kSchemas[0],
       {"[]", R"(["a"])", R"(["a","b"])", R"(["a","A"])", R"(["","a"])", R"(["\n","n"])"},
       {R"(["a","a"])", R"(["a","b","a"])", R"(["",""])", R"(["\n","\u000a"])",
        R"(["\u000A","\u000a"])", R"(["\"","\""])", R"(["\\\"","b","\\\""])"}},
      {kSchemas[4],
       {"[0,1,2,3]", "[0.5,0.25,1.5,1]", "[10,1,12,11]"},
       {"[0,1,2]", "[1,1.0,2,3]", "[0,0.0,1,2]", "[1.50,2,3,1.5]", "[1,2,3,1]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"number"}})",
       {"[0,1]", "[-1,1]", "[0.1,1]"},
       {"[0,-0]", "[-0.0,0]", "[-1,2,-1.0]"}},
      {kSchemas[6],
       {R"([{"x":1},{"x":2}])", R"([{"x":1},{"x":1,"y":true}])"},
       {R"([{"x":1},{"x":1}])", R"([{"x":1,"y":true},{"x":1,"y":true}])"}},
      {kSchemas[11], {R"({"a":["x","y"],"b":["y","x"]})"}, {R"({"a":["x","y"],"b":["x","x"]})"}},
  };
  for (const Row& row : rows) {
    Grammar grammar;
    grammar.set_start(add_json_schema(grammar, nlohmann::ordered_json::parse(row.schema)));
    NaiveRecogniser naive(grammar);
    const auto made = compile_grammar(grammar);
    const auto check = [&](const char* text, bool accepted) {
      CAPTURE(row.schema, text);
      CHECK(accepts_bytes(made, text) == accepted);
      CHECK(naive.accepts(text) == accepted);
    };
    for (const char* text : row.accepted) check(text, true);
    for (const char* text : row.refused) check(text, false);
  }
}

// All of the values are needed: the last ones are forced.
TEST_CASE("scarce_values_are_used_up_to_the_last") {
  std::string values = "\"red\",\"green\"";
  for (int i = 2; i < 90; ++i) values += ",\"" + std::to_string(i) + "\"";
  const auto grammar = compiled(
      R"({"type":"array","uniqueItems":true,"minItems":90,"items":{"enum":[)" + values + "]}}");
  std::mt19937 random(4);
  for (int walk = 0; walk < 3; ++walk) {
    Matcher matcher(grammar, vocabulary());
    std::string text;
    for (bool ended = false; !ended;) {
      const std::vector<int32_t> ids = allowed_tokens(matcher, vocabulary()->size());
      INFO(text);
      REQUIRE_FALSE(ids.empty());
      const int32_t next = drawn(ids, random);
      REQUIRE(matcher.accept(next));
      text += vocabulary()->bytes(next);
      ended = vocabulary()->is_end_token(next);
    }
    const auto value = nlohmann::json::parse(text);
    CHECK(value.size() == 90);
    check_different(value);
  }
}

TEST_CASE("items_that_differ_are_refused_where_it_cannot_be_enforced") {
  const auto refusal = [](const std::string& schema) -> std::string {
    try {
      compiled(schema);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(
      refusal(R"({"type":"array","uniqueItems":true,"minItems":3,"items":{"type":"integer",
                         "minimum":1,"maximum":2.5},"prefixItems":[{"type":"string"}]})"),
      Catch::Contains("item 2 has fewer than 3 values, or those beyond take too much to find, "
                      "and as many different ones are needed"));
  CHECK_THAT(refusal(R"({"type":"array","uniqueItems":true,"minItems":5,"items":{"type":"string",
                         "pattern":"^[ab]?$"}})"),
             Catch::Contains("item 1 has fewer than 5 values"));
  CHECK_THAT(refusal(R"({"type":"array","uniqueItems":true,"items":{"type":"string"},"minItems":2,
                         "contains":{"pattern":"^a?$"},"minContains":3})"),
             Catch::Contains("after 2 items the values that have to come may be used up"));
}

TEST_CASE("refusals_of_items_that_differ_say_what_part_it_is") {
  const auto refusal = [](const std::string& items) -> std::string {
    try {
      compiled(R"({"type":"array","uniqueItems":true,"items":)" + items + "}");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(
      refusal(R"({"type":"integer","multipleOf":7})"),
      Catch::Contains("numbers of an item have a multipleOf other than tens and decimals: take "
                      "it out, at #/items"));
  CHECK_THAT(refusal(R"({"type":"object","properties":{"x":{"type":"array","uniqueItems":true,
                         "prefixItems":[{"type":"string"}]}},"additionalProperties":false})"),
             Catch::Contains("arrays of an item have a uniqueItems with places of their own") &&
                 Catch::Contains("at #/items/properties/x"));
  CHECK_THAT(
      refusal(
          R"({"type":"array","items":{"type":"array","contains":{"const":1},"uniqueItems":true}})"),
      Catch::Contains("arrays of an item have a uniqueItems with a contains: take one of "
                      "the two out, at #/items/items"));
  CHECK_THAT(
      refusal(R"({"type":"array","minItems":2000000,"items":{"type":"null"}})"),
      Catch::Contains(
          "arrays of an item may have more than 1000000 items: make them shorter, at #/items"));
  CHECK_THAT(refusal(R"({"type":"object","not":{"additionalProperties":false}})"),
             Catch::Contains("objects of an item have a member of any name that has to be there"));
}

TEST_CASE("items_of_different_places_are_compared_as_values") {
  const auto schema = [](const std::string& prefix, const std::string& items) {
    return R"({"type":"array","uniqueItems":true,"prefixItems":[)" + prefix + R"(],"items":)" +
           items + "}";
  };
  const auto closed = [](const char* one, const char* other) {
    return std::string(R"({"type":"object","properties":{")") + one + R"(":{"type":"integer"},")" +
           other + R"(":{"type":"integer"}},"required":["a","b"],"additionalProperties":false})";
  };
  const auto tuple = compiled(schema(closed("a", "b"), closed("b", "a")));
  CHECK(accepts_bytes(tuple, R"([{"a":1,"b":2},{"a":2,"b":2}])"));
  CHECK_FALSE(accepts_bytes(tuple, R"([{"a":1,"b":2},{"b":2,"a":1}])"));
  CHECK_FALSE(accepts_bytes(tuple, R"([{"a":1,"b":2},{"a":1,"b":2}])"));
  const auto open =
      compiled(schema(R"({"type":"object","properties":{"z":{}},"additionalProperties":true})",
                      R"({"type":"object"})"));
  CHECK(accepts_bytes(open, R"([{"z":1,"a":2},{"z":2,"a":2}])"));
  CHECK_FALSE(accepts_bytes(open, R"([{"z":1,"a":2},{"a":2,"z":1}])"));
}

TEST_CASE("parts_of_items_that_come_twice_or_in_another_order_are_not_written") {
  struct Row {
    const char* items;
    std::vector<const char*> accepted, refused;
  };
  const Row rows[] = {
      {"{}",
       {R"([1,true,"1",null,[1],{"a":1}])", R"([{"a":1,"b":2},{"a":2,"b":1}])",
        R"([[],[[]],[[[]]]])", R"([{"a":{"b":{"c":true}}},{"a":{"b":{"c":false}}}])"},
       {R"([{"a":1},{"a":1.0}])", R"([[1,[2]],[1,[2]]])", R"([{"b":1,"a":2}])",
        R"([{"a":1,"a":1}])", R"([{"\n":1},{"\u000a":1}])"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"number"}})",
       {"[[-1,0,1],[1]]", "[[],[0]]"},
       {"[[1,1.0]]", "[[-0,0]]", "[[0,-0.0]]", "[[1],[1.0]]"}},
      {R"({"type":"array","uniqueItems":true,"items":{"type":"string"}})",
       {R"([["","a","b"],["a"]])", R"([["Ab","b"],["ab"]])"},
       {R"([["a","a"]])", R"([["b","a"]])", R"([["\n","\u000a"]])", R"([["a"],["a"]])"}},
      {R"({"type":"array","uniqueItems":true,"minItems":2,"items":{"enum":["b","a",1]}})",
       {R"([["b","a"],["b","a",1]])", R"([["a",1],["b",1],["b","a"],["b","a",1]])"},
       {R"([["a"]])", R"([["b","b"]])", R"([["b",1],["b",1]])"}},
      {R"({"type":"array","uniqueItems":true,"items":{"enum":["b","a",1,"c","e","d","f"]}})",
       {R"([["a","b"],[1,"f"]])"},
       {R"([["b","a"]])", R"([["b","b"]])"}},
      {R"({"type":"array","uniqueItems":true,"maxItems":2,"prefixItems":[{"type":"string"},{"type":"null"}]})",
       {R"([["a",null],["b",null]])"},
       {R"([["a",null],["a",null]])"}},
      {R"({"type":"array","contains":{"type":"object","properties":{"a":{"const":1}},"required":["a"]},"maxContains":1})",
       {R"([[1,{"a":1}],[{"a":1},1],[{"a":1,"b":2}]])", R"([[{"a":2},{"a":1}]])"},
       {R"([[{"a":1}],[{"a":1}]])", "[[1]]", R"([[{"a":1},{"a":1}]])", R"([[{"b":2,"a":1}]])"}},
      // The same members are listed in another order, or only by one of the alternatives.
      {R"({"type":"object","anyOf":[{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]},
           {"properties":{"b":{"type":"integer"},"a":{"type":"integer"}}}]})",
       {R"([{"a":1,"b":2},{"a":1}])", R"([{"b":1},{"a":1}])"},
       {R"([{"a":1,"b":2},{"b":2,"a":1}])", R"([{"b":2,"a":1}])"}},
      {R"({"type":"array","uniqueItems":true,"items":{"anyOf":[{"const":true},{"type":"boolean"}]}})",
       {"[[true,false],[true]]"},
       {"[[true,true]]", "[[false,false]]"}},
      {R"({"type":"object","anyOf":[{"properties":{"url":{"type":"string"}},"additionalProperties":true},
           {"properties":{"map":{"type":"integer"}},"additionalProperties":true}],"properties":{"end":{"type":"boolean"}}})",
       {R"([{"end":true,"url":"a","map":1},{"end":true,"map":1}])"},
       {R"([{"end":true,"map":1},{"map":1,"end":true}])",
        R"([{"end":true,"map":1},{"end":true,"map":1.0}])"}},
  };
  for (const Row& row : rows) {
    const auto made =
        compiled(R"({"type":"array","uniqueItems":true,"items":)" + std::string(row.items) + "}");
    for (const char* text : row.accepted) {
      INFO(row.items << " writes " << text);
      CHECK(accepts_bytes(made, text));
    }
    for (const char* text : row.refused) {
      INFO(row.items << " does not write " << text);
      CHECK_FALSE(accepts_bytes(made, text));
    }
  }
}

TEST_CASE("the_last_value_of_a_text_is_found_from_its_end") {
  CHECK(last_json_value(R"([1,"a")") == "\"a\"");
  CHECK(last_json_value(R"(["x\\","a\"b\\")") == R"("a\"b\\")");
  CHECK(last_json_value("[ -1.50") == "-1.50");
  CHECK(last_json_value(R"([1,{"a":[1,"]}"],"b":"\""})") == R"({"a":[1,"]}"],"b":"\""})");
  CHECK(last_json_value("[[],[[1]]") == "[[1]]");
  CHECK(last_json_value("[true,false") == "false");
}

}  // namespace tgi::guide
