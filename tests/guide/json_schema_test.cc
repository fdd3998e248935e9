// JSON Schema: what is written, in which form, and what is refused with which words.
#include "engine/guide/json_schema.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/json/decimal.h"
#include "tests/catch.h"
#include "tests/guide/byte_matcher.h"
#include "tests/guide/vocabularies.h"

namespace tgi::guide {
namespace {

using nlohmann::ordered_json;

std::shared_ptr<const CompiledGrammar> compiled_schema(const std::string& schema,
                                                       const JsonSchemaOptions& options = {}) {
  Grammar grammar;
  grammar.set_start(add_json_schema(grammar, ordered_json::parse(schema), options));
  return compile_grammar(grammar);
}

void check_texts(const std::string& schema,
                 const std::vector<std::string>& accepted,
                 const std::vector<std::string>& refused,
                 const JsonSchemaOptions& options = {}) {
  CAPTURE(schema);
  const auto grammar = compiled_schema(schema, options);
  for (const std::string& text : accepted) {
    CAPTURE(text);
    CHECK(accepts_bytes(grammar, text));
  }
  for (const std::string& text : refused) {
    CAPTURE(text);
    CHECK_FALSE(accepts_bytes(grammar, text));
  }
}

std::string refusal_of(const std::string& schema) {
  try {
    compiled_schema(schema);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing is refused";
}

}  // namespace

TEST_CASE("who leaves out type and describes members or items means objects or arrays") {
  const JsonSchemaOptions as_asked{.closes_objects = true};
  const std::string place = R"({"properties":{"a":{"type":"boolean"}},"required":["a"]})";
  check_texts(place, {R"({"a":true})"}, {"true", "1", "[]", "null", R"("x")"}, as_asked);
  check_texts(place, {R"({"a":true})", "true", "1"}, {"{}"});  // by the letter
  check_texts(R"({"type":"object","properties":{"in":)" + place + R"(},"required":["in"]})",
              {R"({"in":{"a":false}})"}, {R"({"in":1})"}, as_asked);
  check_texts(R"({"items":{"type":"null"}})", {"[]", "[null]"}, {"1", "{}", "null"}, as_asked);
  check_texts(R"({"anyOf":[{"type":"string"},)" + place + "]}", {R"("x")", R"({"a":true})"}, {},
              as_asked);
  // Nothing is described, or several types are told apart.
  check_texts(R"({"minItems":1})", {"1", "[1]", "{}"}, {"[]"}, as_asked);
  check_texts(R"({"not":{"const":5}})", {"1", "[]", "{}", "null"}, {"5"}, as_asked);
  check_texts(R"({"type":["object","null"],"properties":{"a":{"type":"boolean"}}})",
              {"null", R"({"a":true})"}, {"1"}, as_asked);
}

TEST_CASE("an object whose schema has patterns of names gets no members of others") {
  const JsonSchemaOptions as_asked{.closes_objects = true};
  const std::string letters =
      R"({"type":"object","patternProperties":{"^[a-z]+$":{"type":"null"}})";
  check_texts(letters + "}", {"{}", R"({"ab":null,"c":null})"}, {R"({"A":null})", R"({"ab":1})"},
              as_asked);
  check_texts(letters + "}", {R"({"A":1})"}, {R"({"ab":1})"});  // by the letter
  // The length of names is one more limit, as pydantic writes it; fewest members are counted.
  check_texts(letters + R"(,"propertyNames":{"maxLength":2},"minProperties":2})",
              {R"({"a":null,"ab":null})"},
              {"{}", R"({"a":null})", R"({"a":null,"abc":null})", R"({"a":null,"A":null})"},
              as_asked);
  check_texts(letters + R"(,"properties":{"B":{"type":"boolean"}}})",
              {R"({"B":true,"a":null})", R"({"a":null})"}, {R"({"C":1})", R"({"B":true,"C":1})"},
              as_asked);
  check_texts(R"({"allOf":[)" + letters + R"(},{"properties":{"B":{"type":"boolean"}}}]})",
              {R"({"B":true,"a":null})"}, {R"({"C":1})"}, as_asked);
  // Others are spoken of, or none would be left.
  for (const char* const more :
       {R"(,"additionalProperties":true})", R"(,"unevaluatedProperties":true})",
        R"(,"minProperties":1,"propertyNames":{"pattern":"^A"}})"})
    check_texts(letters + more, {R"({"A":1})"}, {R"({"ab":1})"}, as_asked);
  check_texts(R"({"type":"object","patternProperties":{"^_":false}})", {R"({"A":1})"},
              {R"({"_a":1})"}, as_asked);
  // Items that differ.
  check_texts(R"({"type":"array","uniqueItems":true,"items":)" + letters + "}}",
              {R"([{"a":null},{"b":null},{}])"}, {R"([{"A":1}])", R"([{},{}])"}, as_asked);
}

TEST_CASE("a member that only another branch of a oneOf names is left out") {
  const JsonSchemaOptions as_asked{.closes_objects = true};
  const std::string either =
      R"({"oneOf":[{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"]},)"
      R"({"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"]}]})";
  check_texts(either, {R"({"a":true})", R"({"b":false})"},
              {R"({"a":true,"b":null})", R"({"a":true,"b":true})", "{}"}, as_asked);
  check_texts(either, {R"({"a":true,"b":null})"}, {R"({"a":true,"b":true})"});  // by the letter
  const std::string pets =
      R"({"$defs":{"Pet":{"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"]},
          "Cat":{"allOf":[{"$ref":"#/$defs/Pet"},{"properties":{"kind":{"const":"cat"},
                 "meows":{"type":"boolean"}},"required":["meows"]}]},
          "Dog":{"allOf":[{"$ref":"#/$defs/Pet"},{"properties":{"kind":{"const":"dog"},
                 "barks":{"type":"integer"}},"required":["barks"]}]}},
          "oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}]})";
  check_texts(pets, {R"({"kind":"cat","meows":true})", R"({"kind":"dog","barks":1})"},
              {R"({"kind":"cat","meows":true,"barks":"x"})", R"({"kind":"dog","meows":true})"},
              as_asked);
  // What has to be there although only `not` names it is.
  check_texts(R"({"type":"object","properties":{"a":{"type":"null"}},)"
              R"("not":{"properties":{"b":{"type":"string"}}}})",
              {R"({"b":1})", R"({"a":null,"b":[]})"}, {R"({"a":null})", R"({"b":"x"})"}, as_asked);
  // Items that differ.
  check_texts(R"({"type":"array","uniqueItems":true,"items":)" + either + "}",
              {R"([{"a":true},{"a":false},{"b":true}])"},
              {R"([{"a":true},{"a":true}])", R"([{"a":true,"b":1}])"}, as_asked);
}

TEST_CASE("properties come in the order of the schema, others after them") {
  check_texts(R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"boolean"}},
                  "required":["a"]})",
              {R"({"b":1,"a":true})", R"({"a":true})", R"({"b":1,"a":true,"c":[{}]})",
               R"({"a":false,"c":1,"d":2})"},
              {R"({"a":true,"b":1})", R"({"b":1})", R"({"a":true,"a":true})", R"({"c":1,"a":true})",
               R"({"a":true,"b":1,"b":2})", R"({})", R"({"a":true,})", R"({,"a":true})"});
  check_texts(R"({"type":"object","properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{}},
                  "additionalProperties":false})",
              {"{}", R"({"a":1})", R"({"g":1})", R"({"a":1,"g":1})", R"({"b":1,"c":1,"f":1})",
               R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1})"},
              {R"({"b":1,"a":1})", R"({"a":1,"a":1})", R"({"h":1})", R"({"a":1 })"});
}

TEST_CASE("white space is compact, or flexible within a bound") {
  const std::string schema =
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"null"}}},
          "required":["a"],"additionalProperties":false})";
  check_texts(schema, {R"({"a":[null,null]})"}, {R"({"a": [null]})", "{\n\"a\":[]}"});
  const JsonSchemaOptions flexible{JsonSchemaOptions::Whitespace::kFlexible};
  const std::string much(JsonSchemaOptions::kMaxWhitespace, ' ');
  check_texts(schema,
              {R"({"a":[null,null]})", "{\n  \"a\" : [ null ,\tnull ]\r\n}",
               "{" + much + "\"a\":[]}", "{\"a\":[" + much + "]}"},
              {"{" + much + " \"a\":[]}", " {\"a\":[]}", "{\"a\":[]} ", "{\"a\":[" + much + " ]}",
               "{\"a\":[n ull]}"},
              flexible);
  check_texts("{}", {"[1, {\"a\" : 2}]", "{ }", "[ ]"}, {"[1, ]"}, flexible);
}

TEST_CASE("strings have all escapes, those of a pattern only what is needed") {
  check_texts(R"({"type":"string"})",
              {R"("")", R"("a\u0041\n\/\"")", R"("\ud83d\ude00")", "\"\u00e9\U0001F600\""},
              {R"("\ud83d")", R"("\ude00")", R"("\x")", "\"\n\"", "\"\x80\"", "\"\xed\xa0\x80\"",
               R"("a)", "a"});
  check_texts(R"({"type":"string","pattern":"^[a-z\"\\\\\n]{2}$"})",
              {R"("ab")", R"("a\"")", R"("\\\n")", R"("\u000a\u005C")"},
              {R"("\u0061b")", R"("a")", R"("a"")", R"("a\")", "\"a\n\""});
  check_texts(R"({"type":"string","minLength":2,"maxLength":3})",
              {R"("ab")", "\"\u00e9\U0001F600a\"", R"("\u0041\ud83d\ude00")"},
              {R"("a")", R"("abcd")", "\"\u00e9\"", R"("\ud83d\ude00")"});
  check_texts(R"({"enum":["a\"b","\u0007","x",2.50,1e2,null,{"k":[1]}]})",
              {R"("a\"b")", R"("\u0007")", "2.5", "100", "null", R"({"k":[1]})"},
              {"2.50", "1e2", "100.0", R"({"k":[1,1]})", R"({"k":[1.0]})"});
}

TEST_CASE("limits of length hold where they are large") {
  const auto grammar = compiled_schema(R"({"type":"string","minLength":300,"maxLength":700})");
  for (const size_t length : {299U, 300U, 301U, 427U, 428U, 429U, 556U, 699U, 700U, 701U}) {
    CAPTURE(length);
    CHECK(accepts_bytes(grammar, "\"" + std::string(length, 'x') + "\"") ==
          (length >= 300 && length <= 700));
  }
  const auto longer = compiled_schema(R"({"type":"string","minLength":10000,"maxLength":1000000})");
  CHECK_FALSE(accepts_bytes(longer, "\"" + std::string(9999, 'x') + "\""));
  CHECK(accepts_bytes(longer, "\"" + std::string(10000, 'x') + "\""));
  // In blocks.
  const auto longest = compiled_schema(R"({"type":"string","minLength":20000,"maxLength":20001})");
  for (const size_t length : {19999U, 20000U, 20001U, 20002U}) {
    CAPTURE(length);
    CHECK(accepts_bytes(longest, "\"" + std::string(length, 'x') + "\"") ==
          (length == 20000 || length == 20001));
  }
  // What a pattern looks for, behind any number of characters.
  const auto found = compiled_schema(R"({"type":"string","minLength":400,"pattern":"fox"})");
  CHECK(accepts_bytes(found, "\"" + std::string(397, 'x') + "fox\""));
  CHECK_FALSE(accepts_bytes(found, "\"" + std::string(396, 'x') + "fox\""));
  CHECK_FALSE(accepts_bytes(found, "\"" + std::string(400, 'x') + "\""));
  const auto items = compiled_schema(R"({"items":{"type":"integer"},"minItems":3,"maxItems":300})");
  for (const size_t count : {0U, 2U, 3U, 4U, 131U, 132U, 299U, 300U, 301U}) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) text += i == 0 ? "7" : ",7";
    CAPTURE(count);
    CHECK(accepts_bytes(items, text + "]") == (count >= 3 && count <= 300));
  }
}

TEST_CASE("numbers keep their limits in every form without an exponent") {
  check_texts(R"({"type":"number"})", {"0", "-0", "1e5", "-2.50E-3", "10.00"},
              {"01", "+1", ".5", "1.", "1e", "--1", "0x1"});
  check_texts(R"({"type":"integer"})", {"0", "-7", "12345678901234567890"},
              {"1.0", "-0", "1e2", "00"});
  check_texts(R"({"exclusiveMinimum":0.5,"maximum":1e3,"type":"number"})",
              {"0.51", "0.500001", "1000", "1000.00", "999.99"},
              {"0.5", "0.50", "1000.01", "-1", "0", "1e2"});
  check_texts(R"({"type":"number","multipleOf":0.01})", {"1", "1.5", "-1.25", "1.250", "0"},
              {"1.255", "0.001"});
  check_texts(R"({"type":"integer","multipleOf":300})", {"0", "300", "-900", "30000"},
              {"100", "200", "3", "310"});
  check_texts(R"({"type":"integer","minimum":10,"exclusiveMinimum":true})", {"11"}, {"10", "9"});
  for (const double low : {-7.0, -2.5, -0.5, 0.0, 0.25, 3.0, 9.75, 10.0, 99.0}) {
    for (const bool is_exclusive : {false, true}) {
      const std::string limit = nlohmann::json(low).dump();
      const std::string key = is_exclusive ? "exclusiveMinimum" : "minimum";
      const auto above = compiled_schema("{\"type\":\"number\",\"" + key + "\":" + limit + "}");
      const auto not_above =
          compiled_schema("{\"type\":\"number\",\"not\":{\"" + key + "\":" + limit + "}}");
      for (int quarter = -80; quarter <= 480; quarter += quarter < 60 ? 1 : 7) {
        const double value = quarter / 4.0;
        const bool expected = is_exclusive ? value > low : value >= low;
        std::string text = Decimal::of(ordered_json(value)).text();
        CAPTURE(key, low, text);
        REQUIRE(accepts_bytes(above, text) == expected);
        REQUIRE(accepts_bytes(not_above, text) == !expected);
        text += text.find('.') == std::string::npos ? ".00" : "0";
        REQUIRE(accepts_bytes(above, text) == expected);
      }
    }
  }
  for (const int divisor : {1, 2, 3, 4, 6, 7, 10, 12, 25, 40}) {
    const auto grammar =
        compiled_schema("{\"type\":\"integer\",\"multipleOf\":" + std::to_string(divisor) + "}");
    for (int value = -130; value <= 130; ++value) {
      CAPTURE(divisor, value);
      REQUIRE(accepts_bytes(grammar, std::to_string(value)) == (value % divisor == 0));
    }
  }
}

TEST_CASE("items that differ are enforced where there are few values") {
  check_texts(
      R"({"type":"array","items":{"enum":["a","b",1,null]},"uniqueItems":true,"minItems":1})",
      {R"(["b","a"])", R"([null,"a",1,"b"])", "[1]"}, {R"(["a","a"])", "[]", R"([1,"c"])"});
  check_texts(R"({"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false,
                  "uniqueItems":true,"type":"array"})",
              {R"(["a",1])", "[]"}, {R"(["a",1,2])"});
  // As many sets of values as are asked for, not as there are.
  std::string values = "0";
  for (int i = 1; i < 60; ++i) values += "," + std::to_string(i);
  check_texts(
      R"({"type":"array","items":{"enum":[)" + values + R"(]},"uniqueItems":true,"maxItems":3})",
      {"[]", "[59,0,3]"}, {"[1,1]", "[1,2,1]", "[1,2,3,4]"});
  check_texts(R"({"type":"array","items":{"enum":[)" + values + R"(]},"uniqueItems":true})",
              {"[]", "[59,0,3]", "[1,2,3,4,5,6,7,8]"}, {"[1,1]", "[1,2,3,4,5,6,7,1]"});
  check_texts(R"({"type":"array","contains":{"type":"string"},"minContains":2,"maxContains":3})",
              {R"(["a",1,"b"])", R"(["a","b","c",null])"}, {R"(["a",1])", R"(["a","b","c","d"])"});
}

TEST_CASE("patterns of the format regex are patterns") {
  const auto grammar = compiled_schema(R"({"type":"string","format":"regex"})");
  const std::string letters = "()[]{}|*+?\\\\.^$-,0123456789abwdspLuxZ:=!<";
  std::mt19937 random(2);
  for (int round = 0; round < 400; ++round) {
    Matcher matcher(grammar, byte_vocabulary());
    std::string text;
    for (int64_t budget = 60; !matcher.must_end(); --budget) {
      const std::vector<int32_t> ids =
          allowed_tokens(matcher, byte_vocabulary()->size(), std::max<int64_t>(budget, 1));
      REQUIRE_FALSE(ids.empty());
      int32_t next = ids[random() % ids.size()];
      for (int tries = 0; tries < 20; ++tries) {
        const auto wanted = static_cast<int32_t>(letters[random() % letters.size()]);
        if (std::ranges::binary_search(ids, wanted)) next = wanted;
      }
      if (byte_vocabulary()->is_end_token(next)) break;
      REQUIRE(matcher.accept(next));
      text += byte_vocabulary()->bytes(next);
    }
    const auto pattern = nlohmann::json::parse(text).get<std::string>();
    CAPTURE(pattern);
    // The reader of patterns has "]" at the beginning of a set as Python and Rust have it.
    if (pattern.find("[]") != std::string::npos || pattern.find("[^]") != std::string::npos)
      continue;
    RegexPool pool;
    try {
      parse_regex(pool, pattern, RegexUse::kSearch);
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.code() == Code::kUnsupported);
    }
  }
}

TEST_CASE("limits in pydantic's words are kept, and words that are taken out stay so") {
  check_texts(R"({"anyOf":[{"type":"integer"},{"type":"number"}],"ge":0,"lt":10})", {"0", "9.5"},
              {"-1", "10"});
  check_texts(R"({"type":"integer","gt":0,"le":3,"_min":2,"//max":2,"@ref":"x"})", {"1", "3"},
              {"0", "4"});
  check_texts(R"({"title":"Any","tags":["a"],"@context":{"type":"x"}})", {"1", "{}"}, {"x"});
}

TEST_CASE("what is not of a format is known where the format is written as a whole") {
  check_texts(R"({"type":"string","format":"uuid4"})",
              {R"("6f2b1c7e-0f5d-4a3b-9c1d-2e3f4a5b6c7d")"},
              {R"("6f2b1c7e-0f5d-1a3b-9c1d-2e3f4a5b6c7d")", R"("x")"});
  check_texts(R"({"type":"string","format":"ipvanyaddress"})", {R"("1.2.3.4")", R"("::1")"},
              {R"("1.2.3")"});
  check_texts(R"({"type":"string","not":{"format":"ipv4"}})", {R"("a")", R"("1.2.3.400")"},
              {R"("1.2.3.4")"});
  check_texts(R"({"type":"string","not":{"not":{"format":"date"}}})", {R"("2024-02-29")"},
              {R"("2023-02-29")", R"("x")"});
  check_texts(R"({"oneOf":[{"type":"string","format":"date-time"},{"type":"null"}]})",
              {R"("2024-02-29T10:00:00Z")", "null"}, {R"("x")", "1"});
}

TEST_CASE("a schema that is recursive is a recursive grammar") {
  const auto grammar = compiled_schema(
      R"({"$defs":{"list":{"type":["object","null"],"properties":{"v":{"type":"integer"},
          "next":{"$ref":"#/$defs/list"}},"required":["v","next"],"additionalProperties":false}},
          "$ref":"#/$defs/list"})");
  std::string text = "null";
  for (int i = 0; i < 300; ++i) text = R"({"v":)" + std::to_string(i) + R"(,"next":)" + text + "}";
  CHECK(accepts_bytes(grammar, text));
  CHECK_FALSE(accepts_bytes(grammar, text + "}"));
}

TEST_CASE("any JSON is a grammar of its own") {
  Grammar grammar;
  grammar.set_start(add_any_json(grammar, true));
  const auto object = compile_grammar(grammar);
  CHECK(accepts_bytes(object, R"({"a":[1,{"b":null}],"c":"\u00e9"})"));
  CHECK_FALSE(accepts_bytes(object, "[]"));
  Grammar any;
  any.set_start(add_any_json(any, false));
  CHECK(accepts_bytes(compile_grammar(any), "[-1.5e3,true]"));
}

TEST_CASE("mail addresses have at most 64 characters before the @") {
  Grammar grammar;
  grammar.set_start(add_json_schema(
      grammar, nlohmann::ordered_json::parse(R"({"type":"string","format":"email"})")));
  const auto compiled = compile_grammar(grammar);
  const auto address = [](size_t length) {
    return "\"" + std::string(length, 'a') + "@example.org\"";
  };
  CHECK(accepts_bytes(compiled, address(64)));
  CHECK_FALSE(accepts_bytes(compiled, address(65)));
}

// What programs beside JSON Schema write into schemas describes, as JSON Schema has it.
TEST_CASE("words of other programs change nothing") {
  Grammar grammar;
  grammar.set_start(add_json_schema(grammar, nlohmann::ordered_json::parse(R"({
      "$schema": "http://iglucentral.com/schemas/com.snowplowanalytics.self-desc/schema/jsonschema/1-0-0#",
      "self": {"vendor": "com.example"}, "_format": "date", "@type": "T", "$async": true, "links": [],
      "type": "object", "propertyOrder": 3, "note": "", "multiple": false, "javaType": "a.B",
      "properties": {"a": {"type": "string", "format": "colour", "faker": "x", "readonly": true}},
      "required": ["a"], "additionalProperties": false})")));
  const auto compiled = compile_grammar(grammar);
  CHECK(accepts_bytes(compiled, R"({"a":"red"})"));
  CHECK_FALSE(accepts_bytes(compiled, R"({"a":1})"));
}

// Characters, not bytes.
TEST_CASE("a mail address has at most 64 characters before the at sign") {
  for (const std::string letter : {"x", "\u00e9", "\u65e5", "\U0001f600"}) {
    std::string local;
    for (int i = 0; i < 64; ++i) local += letter;
    check_texts(R"({"type":"string","format":"idn-email"})", {"\"" + local + "@a.de\""},
                {"\"" + local + letter + "@a.de\"", "\"@a.de\""});
  }
}

TEST_CASE("the root of a schema of draft 4 says by id where it is") {
  const auto grammar = compiled_schema(R"({"$schema":"http://json-schema.org/draft-04/schema#",
      "id":"http://x/r.json","type":"object","properties":{"a":{"$ref":"http://x/r.json#/definitions/s"},
      "b":{"$ref":"o.json"}},"required":["a","b"],"additionalProperties":false,
      "definitions":{"s":{"type":"boolean"},"o":{"id":"http://x/o.json","type":"null"}}})");
  CHECK(accepts_bytes(grammar, R"({"a":true,"b":null})"));
  CHECK_FALSE(accepts_bytes(grammar, R"({"a":1,"b":null})"));
}

TEST_CASE("what cannot be enforced is refused with its path") {
  struct Row {
    const char* schema;
    const char* message;
  };
  const Row rows[] = {
      {R"({"properties":{"age":{"uniqueItems":true,"contains":{"multipleOf":7}}}})",
       "schema #/properties/age/uniqueItems: that all items differ cannot be enforced: numbers of "
       "an item have a multipleOf"},
      {R"({"items":{"additonalProperties":false}})",
       "schema #/items/additonalProperties: \"additonalProperties\" is no keyword of JSON Schema, "
       "so "
       "it would change nothing; write \"additionalProperties\" if that is meant"},
      {R"({"properties":{"id":{"const":123456789012345678901}}})",
       "schema #/properties/id/const: that the number 1.2345678901234568e+20 is written to its "
       "last "
       "digit, beyond 64 bits, cannot be enforced; make it a string or a pattern"},
      {R"({"enum":[1,{"a":[-9223372036854775809]}]})", "schema #/enum/1/a/0: that the number"},
      {R"({"items":{"anyof":[]}})", "write \"anyOf\" if"},
      {R"({"item":{}})", "write \"items\" if"},
      {R"({"propertys":{}})", "write \"properties\" if"},
      {R"({"required:":[]})", "write \"required\" if"},
      {R"({"emum":[]})", "write \"enum\" if"},
      {R"({"min_length":2})", "write \"minLength\" if"},
      {R"({"type":"integer","min":2})",
       "schema #/min: \"min\" is no keyword of JSON Schema, so it would change nothing; write "
       "minimum, "
       "minLength"},
      {R"({"max-len":2})", "schema #/max-len: \"max-len\" is no keyword of JSON Schema"},
      {R"({"type":"string","format":"date","gt":"2020-01-01"})",
       "schema #/gt: limits of other values than numbers cannot be enforced"},
      {R"({"items":{"type":"integer","gte":2}})", "write minimum, or begin its name with"},
      {R"({"typ":"string"})", "write type, or begin its name with"},
      {R"({"name":"city","schema":{"type":"object"}})",
       "schema #/schema: \"schema\" is no keyword of JSON Schema, and none stands beside it, so "
       "any "
       "JSON would do"},
      {R"({"description":"of a town","city":{"type":"string"}})",
       "with its members in \"properties\""},
      {R"({"ref":"#/$defs/a"})", "schema #/ref: \"ref\" is no keyword of JSON Schema"},
      {R"({"$schema":"http://json-schema.org/draft-07/schema#","dependentRequired":{}})",
       "schema #/dependentRequired: \"dependentRequired\" is newer than the dialect"},
      {R"({"$schema":"https://example.com/mine"})", "schema #/$schema: the dialect"},
      {R"({"format":"dateTime"})",
       "schema #/format: the string \"dateTime\" is no format of JSON Schema, so it would change "
       "nothing; write \"date-time\" if that is meant"},
      {R"({"type":"string","pattern":"^xn--","not":{"format":"hostname"}})",
       "schema #/not/format: that a string is not of this format"},
      {R"({"type":"string","not":{"format":"date-time"}})",
       "schema #/not/format: that a string is not of this format, or of just one of several, "
       "cannot be enforced"},
      {R"({"type":"object","propertyNames":{"not":{"format":"hostname"}}})",
       "schema #/propertyNames/not/format: that a string is not of this format"},
      {R"({"type":"object","not":{"propertyNames":{"format":"email"}}})",
       "schema #/not/propertyNames/format: that names are not of this format"},
      {R"({"type":"string","oneOf":[{"format":"hostname"},{"minLength":3}]})",
       "schema #/oneOf/0/format: that a string is not of this format"},
      {R"({"$ref":"http://example.com/a.json"})",
       "is not in this document, and other documents are"},
      {R"({"$ref":"#/$defs/a"})", "schema #/$ref: \"#/$defs/a\" leads nowhere: # has no \"$defs\""},
      {R"({"$id":"http://a.example/b/c","properties":{"x":{"$ref":"d.json#/y"}}})",
       "put that document under \"$defs\" with \"$id\": \"http://a.example/b/d.json\""},
      {R"({"$recursiveRef":"#"})", "schema #/$recursiveRef: \"$recursiveRef\" depends on the way"},
      {R"({"$ref":"#"})", "schema #: the schema refers to itself without a step"},
      {R"({"type":"object","minProperties":101})",
       "schema #/minProperties: more than 100 members have"},
      {R"({"patternProperties":{"^[ab]$":{}},"additionalProperties":false,"minProperties":3,"type":"object"})",
       "schema #/minProperties: that 3 members have different names cannot be enforced where"},
      {R"({"not":{"uniqueItems":true}})", "schema #/not: what does not satisfy this cannot be"},
      {R"({"type":"strnig"})", "schema #/type: expected null, boolean, number, integer"},
      {R"({"type":"OBJECT"})", "got the string \"OBJECT\"; write \"object\""},
      {R"({"type":["dict","null"]})", "got the string \"dict\"; write \"object\""},
      {R"({"type":"any"})", "got the string \"any\"; take it out when any type will do"},
      {R"({"properties":{"a":{"type":"string","required":true}}})",
       "schema #/properties/a/required: expected an array of names, got true; the object that has"},
      {R"({"$ref":"#/$defs/a","$defs":{"b":{"anyof":[]}}})",
       "schema #/$defs/b/anyof: \"anyof\" is no keyword of JSON Schema"},
      {R"({"$ref":"#/$defs/a","$defs":{"b":{"anyof":[]}}})",
       "; besides, schema #/$ref: \"#/$defs/a\" leads nowhere"},
      {R"({"minimum":"3"})", "schema #/minimum: expected a number, got the string \"3\""},
      {R"({"minLength":-1})", "schema #/minLength: expected a whole number that is not negative"},
      {R"({"multipleOf":0})", "schema #/multipleOf: expected a number above 0"},
      {R"({"properties":{"a/b~":{"pattern":"("}}})", "schema #/properties/a~1b~0/pattern: "},
      {R"({"allOf":[]})", "schema #/allOf: expected an array of schemas, got an empty one"},
      {R"({"properties":{"a":3}})", "schema #/properties/a: expected a schema"},
      {R"([1])", "schema #: expected a schema, an object or a boolean, got an array"},
      {"false", "schema #: no value satisfies the schema"},
      {R"({"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]})",
       "member \"n\" is required, and no value satisfies #/properties/n"},
      {R"({"properties":{"t":{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,
          "minItems":4}},"required":["t"],"type":"object"})",
       "schema #/properties/t: no value satisfies all that is asked of it"},
      {R"({"type":"array","minItems":1,"items":{"type":"array","items":{"type":"integer"},
          "contains":{"type":"string"}}})",
       "schema #/items: no value satisfies all that is asked of it"},
      {R"({"type":"object","properties":{"o":{"type":"object","properties":{"a":{}},
          "additionalProperties":false,"minProperties":2}},"required":["o"]})",
       "schema #/properties/o: no value satisfies all that is asked of it"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.schema);
    CHECK_THAT(refusal_of(row.schema), Catch::Contains(row.message));
  }
}

TEST_CASE("large schemas compile, or are refused, within bounds") {
  ordered_json names;
  ordered_json properties;
  for (int i = 0; i < 100'000; ++i) names.push_back("value " + std::to_string(i));
  for (int i = 0; i < 2000; ++i) properties["p" + std::to_string(i)] = {{"type", "integer"}};
  const auto list = compiled_schema(ordered_json({{"enum", names}}).dump());
  CHECK(accepts_bytes(list, "\"value 99999\""));
  CHECK_FALSE(accepts_bytes(list, "\"value 100000\""));
  const auto object = compiled_schema(ordered_json({{"properties", properties}}).dump());
  CHECK(accepts_bytes(object, R"({"p0":1,"p17":2,"p1999":3,"q":4})"));
  CHECK_FALSE(accepts_bytes(object, R"({"p17":2,"p0":1})"));

  properties["more"] = true;
  CHECK_THAT(refusal_of(ordered_json({{"properties", properties}}).dump()),
             Catch::Contains("schema #/properties: has 2001 members; at most 2000"));

  std::string nested = "{}";
  for (int i = 0; i < 1000; ++i) nested = R"({"items":)" + nested + "}";
  CHECK_THAT(refusal_of(nested), Catch::Contains("nested deeper than 200"));
  std::string all;
  for (int i = 0; i < 25; ++i) {
    const std::string n = std::to_string(i);
    all += std::string(i == 0 ? "" : ",") + R"({"anyOf":[{"required":["a)" + n +
           R"("]},{"required":["b)" + n + R"("]}]})";
  }
  CHECK_THAT(
      refusal_of(R"({"allOf":[)" + all + "]}"),
      Catch::Contains("more than 3000 alternatives, too many to combine; give the branches"));
  // A word that is misspelt in a part is told before what the whole comes to.
  CHECK_THAT(refusal_of(R"({"allOf":[)" + all + R"(],"properties":{"p":{"emum":[1]}}})"),
             Catch::Contains("schema #/properties/p/emum: ") && Catch::Contains("write \"enum\""));
  // Only what overlaps is taken out of a branch of oneOf.
  std::string kinds;
  for (int i = 0; i < 60; ++i) {
    kinds += std::string(i == 0 ? "" : ",") + R"({"properties":{"kind":{"const":"k)" +
             std::to_string(i) + R"("},"n":{"type":"integer"}},"required":["kind","n"]})";
  }
  const auto overlapping = compiled_schema(
      R"({"type":"object","oneOf":[{"anyOf":[)" + kinds +
      R"(]},{"properties":{"kind":{"const":"k0"},"m":{"type":"string"}},"required":["kind","m"]}]})");
  CHECK(accepts_bytes(overlapping, R"({"kind":"k5","n":1})"));
  CHECK(accepts_bytes(overlapping, R"({"kind":"k0","m":"x"})"));
  CHECK_FALSE(accepts_bytes(overlapping, R"({"kind":"k0","n":1,"m":"x"})"));
  CHECK_FALSE(accepts_bytes(overlapping, R"({"kind":"k5","m":"x"})"));
  std::string doubled = R"({"$ref":"#/$defs/d59","$defs":{"d0":{"type":"null"})";
  for (int i = 1; i < 60; ++i) {
    const std::string ref = R"({"$ref":"#/$defs/d)" + std::to_string(i - 1) + "\"}";
    doubled += ",\"d" + std::to_string(i) + R"(":{"anyOf":[)" + ref + R"(,{"items":)" + ref + "}]}";
  }
  CHECK(accepts_bytes(compiled_schema(doubled + "}}"), "[[null]]"));
}

// Made by scripts/golden/make_schema_cases.
TEST_CASE("the member that a discriminator names is written, with the values of its branch") {
  // As pydantic writes classes whose tags have defaults, and reads no value without its tag.
  const std::string pets = R"(,"$defs":{
      "Cat":{"type":"object","properties":{"kind":{"const":"cat","default":"cat"},"n":{"type":"integer"}}},
      "Dog":{"type":"object","properties":{"kind":{"enum":["dog","hound"]},"n":{"type":"integer"}}}}})";
  for (const std::string choice : {"oneOf", "anyOf"}) {
    check_texts("{\"" + choice +
                    R"(":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"},{"type":"null"}],
        "discriminator":{"propertyName":"kind","mapping":{"cat":"#/$defs/Cat"}})" +
                    pets,
                {R"({"kind":"cat"})", R"({"kind":"hound","n":1})", "null"},
                {"{}", R"({"n":1})", R"({"kind":"cow"})"});
  }
  check_texts(R"({"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}])" + pets,
              {R"({"kind":"cat"})", R"({"kind":"dog","n":1})"}, {"{}", R"({"n":1})"});
  // OpenAPI's own way: the values are only in the mapping, or the name of the schema.
  check_texts(R"({"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}],
      "discriminator":{"propertyName":"kind","mapping":{"cat":"#/$defs/Cat","kitten":"Cat"}},"$defs":{
      "Pet":{"type":"object","required":["kind"],"properties":{"kind":{"type":"string"}}},
      "Cat":{"allOf":[{"$ref":"#/$defs/Pet"},{"properties":{"lives":{"type":"integer"}},"required":["lives"]}]},
      "Dog":{"allOf":[{"$ref":"#/$defs/Pet"},{"properties":{"tail":{"type":"integer"}},"required":["tail"]}]}}})",
              {R"({"kind":"cat","lives":9})", R"({"kind":"kitten","lives":9})",
               R"({"kind":"Dog","tail":1})"},
              {R"({"kind":"Dog","lives":9})", R"({"kind":"dog","tail":1})", R"({"lives":9})"},
              {.closes_objects = true});
  // To JSON Schema a value is still of one branch only, whatever its tag.
  check_texts(
      R"({"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],"discriminator":{"propertyName":"t"},"$defs":{
      "A":{"type":"object","properties":{"t":{"type":"string"},"n":{"type":"integer"}}},
      "B":{"type":"object","properties":{"t":{"type":"string"},"n":{"type":"string"}}}}})",
      {R"({"t":"A","n":1})", R"({"t":"B","n":"x"})"}, {R"({"t":"A"})", R"({"n":1})"});
  // A hint that says nothing, or the wrong thing, takes no values away.
  check_texts(R"({"anyOf":[{"type":"object","properties":{"a":{"type":"null"}},
      "additionalProperties":false}],"discriminator":{"propertyName":"kind"}})",
              {"{}", R"({"a":null})"}, {R"({"kind":1})"});
  check_texts(R"({"anyOf":[{"properties":{"a":{"type":"null"}}}],"discriminator":"a"})",
              {"{}", R"({"a":null})"}, {R"({"a":1})"});
}

TEST_CASE("branches that are too many to combine are told apart by a member that they list") {
  ordered_json schema;
  for (int i = 0; i < 12; ++i) {
    ordered_json branch = {{"type", "object"}};
    for (int k = 0; k < 8; ++k) {
      branch["properties"]["m" + std::to_string((3 * i + k) % 17)] = {
          {"type", k % 2 == 0 ? "string" : "integer"}};
    }
    branch["properties"]["type"] = {{"const", "t" + std::to_string(i)}};
    schema["oneOf"].push_back(branch);
  }
  check_texts(schema.dump(), {R"({"m0":"a","type":"t0"})", R"({"type":"t11"})"},
              {R"({"m0":1,"type":"t0"})", R"({"m0":"a"})", "{}", R"({"type":"t12"})"});
  for (auto& branch : schema["oneOf"]) branch["properties"]["type"] = {{"type", "string"}};
  CHECK_THAT(refusal_of(schema.dump()), Catch::Contains("too many to combine"));
}

TEST_CASE("schemas as pydantic, OpenAI's clients and zod write them") {
  std::ifstream file(std::string(TGI_SOURCE_DIR) + "/tests/guide/golden/schema_cases.jsonl");
  REQUIRE(file.good());
  int num_cases = 0;
  for (std::string line; std::getline(file, line); ++num_cases) {
    const ordered_json test = ordered_json::parse(line);
    check_texts(test.at("schema").dump(), test.at("valid").get<std::vector<std::string>>(),
                test.at("invalid").get<std::vector<std::string>>());
  }
  CHECK(num_cases >= 7);
}

}  // namespace tgi::guide
