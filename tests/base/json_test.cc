#include "base/json.h"

#include "base/bounded_json.h"
#include "base/error.h"
#include "tests/catch.h"

namespace tgi {

TEST_CASE("json errors name the path of the value") {
  const Json document = parse_json(R"({"rope_scaling": {"factor": "two"}})");
  const JsonReader reader = JsonReader(document, "config.json").object("rope_scaling");
  CHECK_THROWS_WITH(reader.number("factor"),
                    "config.json.rope_scaling.factor: expected a number, got string");
  CHECK_THROWS_WITH(reader.integer("missing"), "config.json.rope_scaling.missing: missing");
}

TEST_CASE("json refuses deep nesting, invalid utf-8 and unknown members") {
  CHECK_THROWS_AS(parse_json(std::string(1000000, '[')), Error);
  CHECK_NOTHROW(parse_json("[[[[]]]]", 4));
  CHECK_THROWS_AS(parse_json("[[[[]]]]", 3), Error);
  CHECK_THROWS_AS(parse_json("\"\xff\""), Error);
  const Json document = parse_json(R"({"a": 1, "b": 2})");
  CHECK_THROWS_WITH(JsonReader(document, "").refuse_unknown({"a", "c"}),
                    "b: unknown field; known are a, c");
}

TEST_CASE("json of anybody is discarded where it nests too deeply or is none") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + "\"]]\\\"[[\"" + std::string(depth, ']');
  };
  CHECK(json_or_discarded(nested(128)).is_array());
  CHECK(json_or_discarded(nested(129)).is_discarded());
  CHECK(json_or_discarded<Json>(nested(1000000)).is_discarded());
  CHECK(json_or_discarded("[1").is_discarded());
  CHECK(json_or_discarded("{\"b\": 1, \"a\": 2}").dump() == "{\"b\":1,\"a\":2}");
  CHECK(nests_deeper("[[]]", 1));
  CHECK_FALSE(nests_deeper("[[]]", 2));
  CHECK_FALSE(nests_deeper("[][][][]", 1));
  CHECK_FALSE(nests_deeper("]]]]", 0));
  CHECK(json_or_discarded(std::string_view("2\0x", 3)).is_discarded());
  CHECK(json_or_discarded("2") == 2);
}

TEST_CASE("json that can't be parsed is refused by line, column and what was expected") {
  struct Row {
    std::string text;
    const char* message;
  };
  const Row row = GENERATE(
      Row{"", "not valid JSON: expected a document, got no text"},
      Row{"{\n \"a\": 1,\n}",
          "not valid JSON at line 3, column 1: unexpected '}'; expected string, reading an "
          "object key"},
      Row{"{\"a\" 1}",
          "not valid JSON at line 1, column 6: unexpected number; expected ':', reading an "
          "object separator"},
      Row{"[1",
          "not valid JSON at line 1, column 3: unexpected end of input; expected ']', reading "
          "an array"},
      Row{"\n\n[\"\xC3\xA9\xC3\xA9\", nan]",
          "not valid JSON at line 3, column 9: invalid literal near"},
      Row{"{\"a\": 1e999}",
          "not valid JSON at line 1, column 11: the number '1e999' is too large; expected one that "
          "fits 64 bits"},
      Row{"\"\xff\"",
          "not valid JSON at line 1, column 2: invalid string: ill-formed UTF-8 byte; "
          "expected a value"},
      Row{"\"" + std::string(1000, 'a'), "a value"});
  INFO(row.text);
  std::string message;
  try {
    (void)parse_json(row.text);
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK_THAT(message, Catch::Contains(row.message));
  CHECK_THAT(message, !Catch::Contains("exception") && !Catch::Contains("syntax error"));
  CHECK(message.size() < 200);
}

TEST_CASE("json takes whole numbers however they are written and refuses others") {
  const Json document =
      parse_json(R"({"a": 4096.0, "b": 1.5, "c": 18446744073709551615, "d": null})");
  const JsonReader reader(document, "");
  CHECK(reader.integer("a") == 4096);
  CHECK_THROWS_AS(reader.integer("b"), Error);
  CHECK_THROWS_AS(reader.integer("c"), Error);
  CHECK(reader.integer_or("d", 7) == 7);
}

}  // namespace tgi
