// Names of arguments that hold what a dialect writes between names and values.
#include <random>
#include <string>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/dialect/spoken.h"
#include "tests/dialect/taken.h"

namespace tgi::dialect {
namespace {

constexpr const char* kNames[] = {"page[number]", "dc:title", "q\"r", "<t>", "a b",  "it's",
                                  "a=b",          "a,b",      "{x}",  "a/b", "a\\b", "#x",
                                  "a>b",          "a&b",      "",     " x",  ")x",   "/x"};

OrderedJson schema_of(const std::string& name, bool is_nested) {
  OrderedJson properties = {{"k", {{"type", "boolean"}}}};
  properties[name] = {{"type", "boolean"}};
  OrderedJson schema = {{"type", "object"}, {"properties", properties}, {"required", {"k", name}}};
  if (!is_nested) return schema;
  return {{"type", "object"}, {"properties", {{"in", schema}}}, {"required", {"in"}}};
}

}  // namespace

TEST_CASE("an argument of any name is written and read, or refused by its name") {
  std::mt19937 random(5);
  for (const ToolDialect* const dialect : tool_dialects()) {
    for (const std::string name : kNames) {
      for (const bool is_nested : {false, true}) {
        CAPTURE(dialect->name, name, is_nested);
        const OrderedJson schema = schema_of(name, is_nested);
        AnswerForm form;
        form.dialects.tools = dialect;
        form.tools = {.tools = {{.name = "f", .parameters = schema}}, .must_call = true};
        std::string answer;
        try {
          answer = random_answer(compiled(form), random);
        } catch (const Error& error) {
          CHECK(error.code() == Code::kUnsupported);
          CHECK_THAT(error.what(), Catch::Contains("tool f: #/properties/") &&
                                       Catch::Contains("properties/" + name + ": ") &&
                                       Catch::Contains("an argument of this name"));
          continue;
        }
        CAPTURE(answer);
        for (const size_t chunk : {size_t{1}, answer.size()}) {
          const Heard heard = hear(form.dialects, form.tools.tools, answer, chunk);
          CHECK(heard.broken.empty());
          REQUIRE(!heard.calls.empty());
          OrderedJson arguments = OrderedJson::parse(heard.calls[0].arguments, nullptr, false);
          if (is_nested) arguments = arguments["in"];
          CHECK(arguments.size() == 2);
          CHECK((arguments.contains("k") && arguments.contains(name)));
        }
      }
    }
  }
}

TEST_CASE("of names that begin alike the whole one is read") {
  for (const ToolDialect* const dialect : tool_dialects()) {
    std::mt19937 random(6);
    OrderedJson properties;
    for (const char* const name : {"a", "a=b", "a>b", "a:b", "a\">b"}) {
      properties[name] = {{"enum", {name}}};
    }
    AnswerForm form;
    form.dialects.tools = dialect;
    form.tools = {.tools = {{.name = "f",
                             .parameters = {{"type", "object"},
                                            {"properties", properties},
                                            {"required", {"a", "a=b", "a>b", "a:b", "a\">b"}}}}},
                  .must_call = true};
    std::string answer;
    try {
      answer = random_answer(compiled(form), random);
    } catch (const Error& error) {
      CHECK(error.code() == Code::kUnsupported);
      continue;
    }
    CAPTURE(dialect->name, answer);
    for (const size_t chunk : {size_t{1}, answer.size()}) {
      const Heard heard = hear(form.dialects, form.tools.tools, answer, chunk);
      REQUIRE(!heard.calls.empty());
      const OrderedJson arguments = OrderedJson::parse(heard.calls[0].arguments, nullptr, false);
      CHECK(arguments.size() == 5);
      for (const auto& item : arguments.items()) CHECK(item.value() == item.key());
    }
  }
}

}  // namespace tgi::dialect
