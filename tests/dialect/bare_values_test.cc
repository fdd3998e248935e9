// Values that a schema limits, in every dialect: what may be written is read as a value that
// satisfies the schema, and what is read as such a value may be written.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <regex>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/dialect/write_calls.h"
#include "tests/catch.h"
#include "tests/dialect/spoken.h"
#include "tests/dialect/taken.h"

namespace tgi::dialect {
namespace {

using Rule = std::function<bool(const OrderedJson&)>;

int64_t length_of(const OrderedJson& value) {
  return count_utf8_characters(value.get_ref<const std::string&>());
}
Rule any_of_rules(std::vector<Rule> rules) {
  return [rules](const OrderedJson& value) {
    return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) { return rule(value); });
  };
}
Rule is_null() {
  return [](const OrderedJson& value) { return value.is_null(); };
}
// Of any size: the library has large ones as doubles.
bool is_whole(const OrderedJson& value) {
  return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
}
Rule is_integer() {
  return is_whole;
}
Rule has_length(int64_t least, int64_t most) {
  return [=](const OrderedJson& value) {
    return value.is_string() && length_of(value) >= least && length_of(value) <= most;
  };
}
Rule matches(const std::string& pattern) {
  return [regex = std::regex(pattern)](const OrderedJson& value) {
    return value.is_string() && std::regex_search(value.get_ref<const std::string&>(), regex);
  };
}
Rule is_one_of(const char* list) {
  return [values = OrderedJson::parse(list)](const OrderedJson& value) {
    // 5 and 5.0 are one number, and no value is another type's.
    return std::find(values.begin(), values.end(), value) != values.end();
  };
}
Rule is_no_string() {
  return [](const OrderedJson& value) { return !value.is_string(); };
}

struct Limited {
  const char* schema;
  Rule satisfies;
};

std::vector<Limited> limited_values() {
  const Rule is_date = matches(
      "^[0-9]{4}-(02-(0[1-9]|[12][0-9])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
      "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01]))$");
  return {
      {R"({"type": "string", "maxLength": 5})", has_length(0, 5)},
      {R"({"type": ["string", "null"], "maxLength": 5})",
       any_of_rules({has_length(0, 5), is_null()})},
      {R"({"type": ["string", "null"], "minLength": 4, "maxLength": 6})",
       any_of_rules({has_length(4, 6), is_null()})},
      {R"({"type": "string", "nullable": true, "maxLength": 5})",
       any_of_rules({has_length(0, 5), is_null()})},
      {R"({"anyOf": [{"type": "string", "pattern": "^[a-z]{3}$"}, {"type": "null"}]})",
       any_of_rules({matches("^[a-z]{3}$"), is_null()})},
      {R"({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]})",
       any_of_rules({is_date, is_null()})},
      {R"({"enum": ["a", "b", null]})", is_one_of(R"(["a", "b", null])")},
      {R"({"enum": ["5", 5, "true", true]})", is_one_of(R"(["5", 5, "true", true])")},
      {R"({"enum": ["null", "None", " 5", 7]})", is_one_of(R"(["null", "None", " 5", 7])")},
      {R"({"enum": ["a", {"k": [1]}, "{"]})", is_one_of(R"(["a", {"k": [1]}, "{"])")},
      {R"({"anyOf": [{"$ref": "#/$defs/S"}, {"type": "null"}]})",
       any_of_rules({has_length(0, 4), is_null()})},
      {R"({"$ref": "#/$defs/S"})", has_length(0, 4)},
      {R"({"type": ["string", "integer"], "maxLength": 3})",
       any_of_rules({has_length(0, 3), is_integer()})},
      {R"({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3, "maximum": 40}]})",
       [](const OrderedJson& value) {
         return value.is_string() || (is_whole(value) && value >= 3 && value <= 40);
       }},
      {R"({"oneOf": [{"type": "string", "maxLength": 3}, {"type": "boolean"}]})",
       any_of_rules({has_length(0, 3), [](const auto& value) { return value.is_boolean(); }})},
      {R"({"type": "string", "not": {"const": "x"}, "maxLength": 2})",
       [](const OrderedJson& value) { return has_length(0, 2)(value) && value != "x"; }},
      {R"({"allOf": [{"type": ["string", "null"]}, {"maxLength": 3}]})",
       any_of_rules({has_length(0, 3), is_null()})},
      {R"({"anyOf": [{"type": "string", "format": "date"}, {"type": "boolean", "const": true}]})",
       any_of_rules({is_date, [](const auto& value) { return value == true; }})},
      {R"({"type": "integer", "allOf": [{"minimum": 5}]})",
       [](const OrderedJson& value) { return is_whole(value) && value.get<double>() >= 5; }},
  };
}

// Beside arrays and objects, which notations of their own do not follow as far.
std::vector<Limited> limited_in_json() {
  return {
      {R"({"maxLength": 3})", any_of_rules({has_length(0, 3), is_no_string()})},
      {R"({"pattern": "^a$"})", any_of_rules({matches("^a$"), is_no_string()})},
      {R"({"anyOf": [{"type": "array", "items": {"type": "integer"}, "maxItems": 2},
                     {"type": "string", "maxLength": 6}]})",
       any_of_rules({has_length(0, 6),
                     [](const OrderedJson& value) {
                       return value.is_array() && value.size() <= 2 &&
                              std::all_of(value.begin(), value.end(), is_integer());
                     }})},
  };
}

AnswerForm form_of(const ToolDialect& dialect, const char* schema, bool strict) {
  const OrderedJson parameters = {{"$defs", {{"S", {{"type", "string"}, {"maxLength", 4}}}}},
                                  {"type", "object"},
                                  {"properties", {{"v", OrderedJson::parse(schema)}}},
                                  {"required", {"v"}},
                                  {"additionalProperties", false}};
  const OrderedJson function = {{"name", "f"}, {"parameters", parameters}, {"strict", strict}};
  AnswerForm out;
  out.dialects.tools = &dialect;
  out.tools =
      tool_use(checked_tools({{{"type", "function"}, {"function", function}}}), std::nullopt, true);
  out.tools.must_call = true;
  return out;
}

const CallPart* parameters_part(const ToolDialect& dialect) {
  for (const CallPart& part : dialect.syntax.call) {
    if (part.kind == CallPart::Kind::kParameters) return &part;
  }
  return nullptr;
}

// The value of `v` as it is read, in whole and piece by piece; discarded: there is none.
OrderedJson heard_value(const AnswerForm& form, const std::string& answer) {
  std::vector<OrderedJson> values;
  for (const size_t chunk : {size_t{1}, std::max<size_t>(answer.size(), 1)}) {
    const Heard heard = hear(form.dialects, form.tools.tools, answer, chunk);
    OrderedJson& value = values.emplace_back(OrderedJson::value_t::discarded);
    if (heard.calls.empty() || !heard.broken.empty()) continue;
    const OrderedJson arguments = OrderedJson::parse(heard.calls[0].arguments, nullptr, false);
    if (arguments.is_object() && arguments.contains("v")) value = arguments["v"];
  }
  CHECK((values[0].is_discarded() ? values[1].is_discarded() : values[0] == values[1]));
  return values[0];
}

void check_random_answers(const AnswerForm& form, const Rule& satisfies, std::mt19937& random) {
  const auto grammar = compiled(form);
  for (int round = 0; round < 5; ++round) {
    const std::string answer = random_answer(grammar, random);
    CAPTURE(answer);
    // A number of hundreds of digits is one, although the library knows none.
    const OrderedJson value = heard_value(form, answer);
    if (!value.is_discarded()) CHECK(satisfies(value));
    if (value.is_discarded()) CHECK(answer.size() > 300);
  }
}

}  // namespace

TEST_CASE("what a strict tool's value may be written as satisfies the schema in every dialect") {
  std::mt19937 random(11);
  std::vector<Limited> all = limited_values();
  for (const Limited& each : all) {
    for (const ToolDialect* const dialect : tool_dialects()) {
      CAPTURE(dialect->name, each.schema);
      check_random_answers(form_of(*dialect, each.schema, /*strict=*/true), each.satisfies, random);
    }
  }
}

TEST_CASE("a limit of one type of several holds beside arrays and objects, or is refused") {
  std::mt19937 random(12);
  for (const Limited& each : limited_in_json()) {
    for (const ToolDialect* const dialect : tool_dialects()) {
      CAPTURE(dialect->name, each.schema);
      const AnswerForm form = form_of(*dialect, each.schema, /*strict=*/true);
      try {
        check_random_answers(form, each.satisfies, random);
      } catch (const Error& error) {
        CHECK(error.code() == Code::kUnsupported);
        CHECK_THAT(error.what(), Catch::Contains("tool f: #/properties/v: can't be enforced"));
        CHECK(dialect->name == "minimax_m3");
      }
    }
  }
}

TEST_CASE("of texts between marks those are taken that are read as values of the schema") {
  constexpr const char* kTexts[] = {"",           "a",
                                    "b",          "x",
                                    "abc",        "abcd",
                                    "abcdef",     "Zoë",
                                    "null",       "None",
                                    " null",      "nul",
                                    "nulls",      "5",
                                    " 5",         "5.0",
                                    "05",         "41",
                                    "-7",         "1e2",
                                    "true",       "True",
                                    "false",      "truer",
                                    "[1]",        "[1, 2]",
                                    "[1, 2, 3]",  "[x",
                                    "[x]",        "{}",
                                    "{\"a\": 1}", "(1)",
                                    "\"abc\"",    "'abc'",
                                    "\"",         "2024-02-29",
                                    "2024-02-30", "a b",
                                    "true ",      "1 2",
                                    "1e999",      "-",
                                    "\n5",        "a\nb",
                                    "null\n",     "12345678901234567890123"};
  std::vector<Limited> all = limited_values();
  std::ranges::move(limited_in_json(), std::back_inserter(all));
  for (const Limited& each : all) {
    for (const ToolDialect* const dialect : tool_dialects()) {
      const CallPart* const part = parameters_part(*dialect);
      if (part == nullptr) continue;
      const AnswerForm form = form_of(*dialect, each.schema, /*strict=*/true);
      const auto grammar = compiled(form);
      const std::string call =
          write_calls(dialect->syntax, {{.name = "f", .arguments = {{"v", "XYZZY"}}}});
      for (const char* const text : kTexts) {
        std::string written = call;
        written.replace(written.find("XYZZY"), 5, text);
        const OrderedJson value = heard_value(form, written);
        const bool is_right = !value.is_discarded() && each.satisfies(value);
        const bool is_taken = takes(grammar, written);
        CAPTURE(dialect->name, each.schema, text, value.dump());
        if (is_taken) CHECK(is_right);
        // Values that are no strings are written in one way, and no string in brackets where
        // something else in brackets may be wrong; where such texts want a section they have one.
        const bool is_sure =
            value.is_string()
                ? std::string_view("[{(").find(text[0]) == std::string_view::npos && value == text
                : value.dump() == text && std::string_view(text) != "5.0";
        const bool is_plain = part->section_open.empty() ||
                              std::string_view(text).find('\n') == std::string_view::npos;
        if (is_right && is_sure && is_plain && text[0] != '\0') CHECK(is_taken);
      }
    }
  }
}

TEST_CASE("arguments under other names satisfy what is said of them") {
  const OrderedJson parameters = OrderedJson::parse(R"json({"type": "object",
      "properties": {"n": {"type": "integer"}}, "additionalProperties": {"type": "string", "maxLength": 2}})json");
  std::mt19937 random(13);
  for (const ToolDialect* const dialect : tool_dialects()) {
    CAPTURE(dialect->name);
    AnswerForm form = form_of(*dialect, "true", /*strict=*/true);
    form.tools.tools.front().parameters = parameters;
    const auto grammar = compiled(form);
    for (int round = 0; round < 5; ++round) {
      const std::string answer = random_answer(grammar, random);
      CAPTURE(answer);
      const Heard heard = hear(form.dialects, form.tools.tools, answer, 1);
      REQUIRE(!heard.calls.empty());
      const OrderedJson arguments = OrderedJson::parse(heard.calls[0].arguments, nullptr, false);
      if (arguments.is_discarded()) continue;  // a number that no double holds
      for (const auto& item : arguments.items()) {
        CAPTURE(item.key(), item.value().dump());
        CHECK((item.key() == "n" ? is_whole(item.value()) : has_length(0, 2)(item.value())));
      }
    }
  }
}

TEST_CASE("a schema of which nothing can be written bare is refused of a strict tool") {
  const ToolDialect& dialect = *find_tool_dialect("qwen3_coder");
  const char* const schema = R"({"anyOf": [{"const": "5"}, {"type": "integer", "maximum": 4}]})";
  CHECK_NOTHROW(compiled(form_of(dialect, schema, /*strict=*/true)));
  const auto is_refused = [&](const char* given, const char* why) {
    CAPTURE(given);
    CHECK_THROWS_WITH(compiled(form_of(dialect, given, /*strict=*/true)), Catch::Contains(why));
    CHECK_NOTHROW(compiled(form_of(dialect, given, /*strict=*/false)));
  };
  is_refused(R"({"type": ["string", "null"], "format": "dateTime"})",
             "tool f: schema #/properties/v/format: ");
  is_refused(R"({"type": ["string", "null"], "maxlength": 5})",
             "tool f: schema #/properties/v/maxlength: ");
  is_refused(R"({"anyOf": [{"const": "5"}, {"type": "integer", "minimum": 4, "maximum": 3}]})",
             "tool f: #/properties/v: ");
}

TEST_CASE("a text with a zero byte is no number") {
  const ToolDialect& dialect = *find_tool_dialect("qwen3_coder");
  const AnswerForm form = form_of(dialect, R"({"type": ["string", "integer"]})", /*strict=*/true);
  std::string written = write_calls(dialect.syntax, {{.name = "f", .arguments = {{"v", "2?x"}}}});
  written[written.find('?')] = '\0';
  CHECK(takes(compiled(form), written));
  CHECK(heard_value(form, written) == std::string("2\0x", 3));
}

TEST_CASE("of a tool that is not strict what can be enforced is") {
  std::mt19937 random(14);
  const Rule short_or_null = any_of_rules({has_length(0, 5), is_null()});
  for (const ToolDialect* const dialect : tool_dialects()) {
    if (parameters_part(*dialect) == nullptr) continue;
    CAPTURE(dialect->name);
    for (
        const char* const schema :
        {R"({"type": ["string", "null"], "maxLength": 5})",
         R"({"type": ["string", "null"], "maxLength": 5, "pattern": "(a)\\1", "requird": true})"}) {
      check_random_answers(form_of(*dialect, schema, /*strict=*/false), short_or_null, random);
    }
  }
}

}  // namespace tgi::dialect
