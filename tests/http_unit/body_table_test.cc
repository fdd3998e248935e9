// Bodies read by their tables: wrong types, nulls, unknown members, ranges and their order.
#include "cmd/http/body_table.h"

#include <array>

#include "tests/catch.h"

namespace tgi::http {

struct Inner {
  std::string name;
  std::optional<bool> flag;
};

struct Outer {
  bool yes = false;
  std::optional<double> number;
  std::optional<uint32_t> count;
  int32_t level = 0;
  std::vector<std::string> texts;
  std::optional<Inner> inner;
  std::optional<OrderedJson> anything;
};

template <>
struct SchemaName<Inner> {
  static constexpr std::string_view value = "Inner";
};
template <>
struct SchemaName<Outer> {
  static constexpr std::string_view value = "Outer";
};

template <>
std::span<const BodyField<Inner>> body_fields<Inner>() {
  static constexpr std::array kFields = {
      body_field<&Inner::name>("name", {.description = "whose", .required = true}),
      body_field<&Inner::flag>("flag"),
  };
  return kFields;
}

template <>
std::span<const BodyField<Outer>> body_fields<Outer>() {
  static constexpr std::array kFields = {
      body_field<&Outer::yes>("yes"),
      body_field<&Outer::number>(
          "number",
          {.range = {.low = 0, .high = 1, .above_low = true, .rule = "`number` is out of range"}}),
      body_field<&Outer::count>(
          "count", {.range = {.low = 0, .above_low = true, .rule = "`count` must be positive"}}),
      body_field<&Outer::level>("level",
                                {.range = {.high = 9, .rule = "`level` must be at most 9"}}),
      body_field<&Outer::texts>("texts"),
      body_field<&Outer::inner>("inner"),
      body_field<&Outer::anything>("anything"),
  };
  return kFields;
}

namespace {

Outer read(const char* text) {
  return read_body<Outer>(OrderedJson::parse(text));
}

// What a body is refused with, without the words that are the same for all.
std::string problem_of(const char* text) {
  const std::string prefix = "Failed to deserialize the JSON body into the target type: ";
  try {
    (void)read(text);
  } catch (const BodyError& error) {
    CHECK(error.status() == 422);
    const std::string what = error.what();
    REQUIRE(what.starts_with(prefix));
    return what.substr(prefix.size());
  }
  return "nothing was thrown";
}

std::string rule_of(const Outer& body) {
  try {
    check_ranges(body);
  } catch (const ApiError& error) {
    CHECK(error.status() == 422);
    CHECK(error.type() == "validation");
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a body is read field by field") {
  const Outer body = read(R"({"yes": true, "number": 0.5, "count": 4294967295, "level": -7,
                              "texts": ["a", "\u20ac"], "inner": {"name": "n", "flag": false},
                              "anything": [1, {"b": null}]})");
  CHECK(body.yes);
  CHECK(body.number == 0.5);
  CHECK(body.count == 4294967295U);
  CHECK(body.level == -7);
  CHECK(body.texts == std::vector<std::string>{"a", "\u20ac"});
  REQUIRE(body.inner);
  CHECK(body.inner->name == "n");
  CHECK(body.inner->flag == false);
  CHECK(body.anything->dump() == R"([1,{"b":null}])");
  CHECK(read(R"({"number": 1})").number == 1.0);  // a whole number is a number
}

TEST_CASE("null is absent, known or not") {
  const Outer body = read(R"({"yes": null, "number": null, "count": null, "level": null,
                              "texts": null, "inner": null, "anything": null,
                              "best_of_friends": null})");
  CHECK_FALSE(body.yes);
  CHECK_FALSE(body.number);
  CHECK_FALSE(body.count);
  CHECK(body.level == 0);
  CHECK(body.texts.empty());
  CHECK_FALSE(body.inner);
  CHECK_FALSE(body.anything);
  CHECK(rule_of(body).empty());
}

TEST_CASE("an unknown member is refused by its name") {
  const auto refusal_of = [](const char* text) -> std::string {
    try {
      (void)read(text);
    } catch (const ApiError& error) {
      CHECK(error.status() == 422);
      CHECK(error.code() == "unknown_parameter");
      return error.what();
    }
    return "nothing was thrown";
  };
  CHECK(
      refusal_of(R"({"yes": true, "nmuber": 0})") ==
      "Input validation error: unknown field `nmuber`, expected one of yes, number, count, level, "
      "texts, inner, anything");
  CHECK(refusal_of(R"({"inner": {"name": "n", "flags": true}})") ==
        "Input validation error: unknown field `inner.flags`, expected one of name, flag");
  CHECK(refusal_of(R"({"": 3})").starts_with("Input validation error: unknown field ``"));
}

TEST_CASE("extra members are taken when they ask for nothing") {
  constexpr std::array kExtras = {ExtraField{"tag", kAnything, "a label"},
                                  ExtraField{"beams", "[1, false]", "no beams here"},
                                  ExtraField{"never", "[]", "not there"}};
  constexpr std::array<std::string_view, 1> kKnown = {"yes"};
  const auto refusal_of = [&](const std::string& name, const char* value) -> std::string {
    try {
      check_extra_field("p." + name, name, OrderedJson::parse(value), kExtras, kKnown);
    } catch (const ApiError& error) {
      return error.code() + ": " + error.what();
    }
    return "";
  };
  for (const char* value : {"1", "\"x\"", "{}", "null", "[[]]"})
    CHECK(refusal_of("tag", value).empty());
  for (const char* value : {"1", "1.0", "false", "null"}) CHECK(refusal_of("beams", value).empty());
  CHECK(refusal_of("beams", "2") ==
        "unsupported_feature: Input validation error: `p.beams` is not supported (no beams here); "
        "leave it out or give 1 or give false");
  CHECK_FALSE(refusal_of("beams", "true").empty());
  CHECK(refusal_of("never", "null").empty());
  CHECK(
      refusal_of("never", "0") ==
      "unsupported_feature: Input validation error: `p.never` is not supported (not there); leave "
      "it out");
  CHECK(refusal_of("other", "0").starts_with("unknown_parameter: "));
  CHECK(extra_field_schema(kExtras[1])["enum"] == OrderedJson::parse("[1, false, null]"));
}

TEST_CASE("a wrong type is refused with its place") {
  struct Row {
    const char* body;
    const char* problem;
  };
  const Row row = GENERATE(
      Row{"[]", "body: invalid type: array, expected an object"},
      Row{"7", "body: invalid type: number, expected an object"},
      Row{R"({"yes": 1})", "yes: invalid type: number, expected a boolean"},
      Row{R"({"yes": "true"})", "yes: invalid type: string, expected a boolean"},
      Row{R"({"number": "1"})", "number: invalid type: string, expected a number"},
      Row{R"({"number": true})", "number: invalid type: boolean, expected a number"},
      Row{R"({"count": 1.0})", "count: invalid type: number, expected a whole number"},
      Row{R"({"count": -1})", "count: invalid value: -1, expected a number from 0 to 4294967295"},
      Row{R"({"count": 4294967296})",
          "count: invalid value: 4294967296, expected a number from 0 to 4294967295"},
      Row{R"({"level": 18446744073709551615})",
          "level: invalid value: 18446744073709551615, expected a number from -2147483648 to "
          "2147483647"},
      Row{R"({"texts": "a"})", "texts: invalid type: string, expected an array"},
      Row{R"({"texts": ["a", null]})", "texts[1]: invalid type: null, expected a string"},
      Row{R"({"inner": []})", "inner: invalid type: array, expected an object"},
      Row{R"({"inner": {}})", "inner.name: missing field"},
      Row{R"({"inner": {"name": null}})", "inner.name: missing field"},
      Row{R"({"inner": {"name": "n", "flag": 0}})",
          "inner.flag: invalid type: number, expected a boolean"});
  CAPTURE(row.body);
  CHECK(problem_of(row.body) == row.problem);
}

TEST_CASE("of several broken ranges the first of the table is told") {
  CHECK(rule_of(read(R"({"level": 10, "count": 0, "number": 2})")) ==
        "Input validation error: `number` is out of range");
  CHECK(rule_of(read(R"({"level": 10, "count": 0, "number": 1})")) ==
        "Input validation error: `count` must be positive");
  CHECK(rule_of(read(R"({"level": 10})")) == "Input validation error: `level` must be at most 9");
  CHECK(rule_of(read(R"({"level": 9, "count": 1, "number": 1})")).empty());
  CHECK(rule_of(read(R"({"number": 0})")) == "Input validation error: `number` is out of range");
}

TEST_CASE("not a number is out of every range") {
  Outer body;
  body.number = std::nan("");
  CHECK(rule_of(body) == "Input validation error: `number` is out of range");
}

TEST_CASE("the schema says what is checked") {
  const OrderedJson schema = body_schema<Outer>();
  CHECK_FALSE(schema.contains("required"));
  CHECK(schema["properties"]["number"] == OrderedJson({{"type", "number"},
                                                       {"format", "float"},
                                                       {"minimum", 0.0},
                                                       {"exclusiveMinimum", true},
                                                       {"maximum", 1.0},
                                                       {"nullable", true}}));
  CHECK(schema["properties"]["count"]["minimum"] == 0);
  CHECK(schema["properties"]["texts"]["items"]["type"] == "string");
  CHECK(schema["properties"]["inner"]["$ref"] == "#/components/schemas/Inner");
  CHECK(body_schema<Inner>()["required"] == OrderedJson::array({"name"}));
  CHECK(body_schema<Inner>()["properties"]["name"]["description"] == "whose");
  CHECK(schema["additionalProperties"] == false);
}

}  // namespace tgi::http
