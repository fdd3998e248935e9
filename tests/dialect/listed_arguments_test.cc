// Arguments that a schema names elsewhere than in `properties`, in every dialect that writes
// arguments one by one.
#include "engine/dialect/listed_arguments.h"

#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/dialect/call_taker.h"

namespace tgi::dialect {
namespace {

bool writes_one_by_one(const ToolDialect& dialect) {
  for (const CallPart& part : dialect.syntax.call) {
    switch (part.kind) {
      case CallPart::Kind::kParameters:
      case CallPart::Kind::kKeywords:
      case CallPart::Kind::kEntries:
      case CallPart::Kind::kElements:
        return true;
      default:
        break;
    }
  }
  return false;
}

AnswerForm form_with(const ToolDialect& dialect, const char* parameters, bool strict) {
  AnswerForm form;
  form.dialects.tools = &dialect;
  form.tools = {
      .tools = {{.name = "f", .parameters = OrderedJson::parse(parameters), .strict = strict}},
      .must_call = true};
  return form;
}

OrderedJson random_arguments(const AnswerForm& form, std::mt19937& random) {
  const std::string answer = random_answer(compiled(form), random);
  CAPTURE(answer);
  const Heard heard = hear(form.dialects, form.tools.tools, answer, 1);
  REQUIRE(!heard.calls.empty());
  return OrderedJson::parse(heard.calls[0].arguments);
}

// An argument "a" has to be a boolean, and "b" is of the enum where it is there.
constexpr const char* kReferences[] = {
    R"json({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/A%3CB%3E",
        "definitions": {"B": {"enum": ["p", "q"]}, "A<B>": {"type": "object", "properties": {
        "a": {"type": "boolean"}, "b": {"$ref": "#/definitions/B"}}, "required": ["a"],
        "additionalProperties": false}}})json",
    R"json({"type": "object", "$ref": "#/$defs/X", "$defs": {"X": {"$ref": "#/$defs/Y"}, "Y": {"type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"enum": ["p", "q"]}}, "required": ["a"]}}})json"};
constexpr const char* kBranches[] = {
    R"json({"allOf": [{"properties": {"a": {"type": "boolean"}}, "required": ["a"]},
        {"$ref": "#/$defs/B"}], "$defs": {"B": {"properties": {"b": {"enum": ["p", "q"]}}}}})json",
    R"json({"type": "object", "$ref": "#/$defs/A", "properties": {"b": {"enum": ["p", "q"]}},
        "$defs": {"A": {"properties": {"a": {"type": "boolean"}}, "required": ["a"]}}})json",
    R"json({"oneOf": [{"properties": {"a": {"const": true}, "b": {"const": "p"}}, "required": ["a", "b"]},
        {"properties": {"a": {"const": false}, "b": {"const": "q"}}, "required": ["a"]}]})json",
    R"json({"properties": {"a": {"type": "boolean"}}, "allOf": [{"required": ["a"]}],
        "if": {"properties": {"a": {"const": true}}}, "then": {"properties": {"b": {"enum": ["p", "q"]}}}})json"};

void check_arguments(const OrderedJson& arguments) {
  CAPTURE(arguments.dump());
  CHECK((arguments.contains("a") && arguments["a"].is_boolean()));
  if (!arguments.contains("b")) return;
  CHECK((arguments["b"] == OrderedJson("p") || arguments["b"] == OrderedJson("q")));
  CHECK(arguments.size() == 2);
}

}  // namespace

TEST_CASE("arguments behind references and in branches are written and read") {
  std::mt19937 random(21);
  for (const ToolDialect* const dialect : tool_dialects()) {
    if (!writes_one_by_one(*dialect)) continue;
    CAPTURE(dialect->name);
    for (int round = 0; round < 4; ++round) {
      for (const char* const parameters : kReferences) {
        CAPTURE(parameters);
        check_arguments(random_arguments(form_with(*dialect, parameters, true), random));
      }
      for (const char* const parameters : kBranches) {
        CAPTURE(parameters);
        check_arguments(random_arguments(form_with(*dialect, parameters, false), random));
      }
    }
    for (const char* const parameters : kBranches) {
      CHECK_THROWS(compiled(form_with(*dialect, parameters, true)));
    }
  }
}

TEST_CASE("an argument that only `required` names is there, or the tool is refused") {
  constexpr const char* kOnlyRequired =
      R"json({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a", "b"]})json";
  constexpr const char* kImpossible =
      R"json({"type": "object", "properties": {}, "required": ["b"], "additionalProperties": false})json";
  std::mt19937 random(22);
  for (const ToolDialect* const dialect : tool_dialects()) {
    if (!writes_one_by_one(*dialect)) continue;
    CAPTURE(dialect->name);
    for (int round = 0; round < 3; ++round) {
      const OrderedJson arguments =
          random_arguments(form_with(*dialect, kOnlyRequired, true), random);
      CHECK((arguments.contains("a") && arguments.contains("b") && arguments.size() == 2));
    }
    CHECK_THROWS(compiled(form_with(*dialect, kImpossible, true)));
  }
}

TEST_CASE("keywords of Python may have other names where the schema says what they are") {
  const CallTaker takes_call("pythonic",
                             R"json({"type": "object", "properties": {"n": {"type": "null"}},
      "required": ["n"], "additionalProperties": {"type": "boolean"}})json",
                             /*strict=*/true);
  CHECK(takes_call("[f(n=None)]"));
  CHECK(takes_call("[f(n=None, a=True, b_1=False)]"));
  CHECK(takes_call.arguments() == R"({"n": null, "a": true, "b_1": false})");
  CHECK_FALSE(takes_call("[f(n=None, a=1)]"));
  CHECK_FALSE(takes_call("[f(a=True)]"));
}

TEST_CASE("a call whose schema has patterns of names is no call without arguments") {
  const CallTaker takes_call("qwen3_coder", R"json({"type": "object", "additionalProperties": false,
      "patternProperties": {"^x_": {"type": "integer"}}})json");
  CHECK(takes_call(
      "<tool_call>\n<function=f>\n<parameter=x_1>\n5\n</parameter>\n</function>\n</tool_call>"));
  CHECK(takes_call.arguments() == R"({"x_1": 5})");
}

}  // namespace tgi::dialect
