// What models write around their calls, and in other ways than the usual one: the grammar takes it,
// and it is read back.
#include <string>
#include <vector>

#include "engine/dialect/write_calls.h"
#include "tests/catch.h"
#include "tests/dialect/call_taker.h"
#include "tests/dialect/spoken.h"
#include "tests/dialect/taken.h"

namespace tgi::dialect {
namespace {

const std::vector<Tool>& tools_of_books() {
  static const std::vector<Tool> kTools =
      tool_use(checked_tools(book_tools()), std::nullopt, true).tools;
  return kTools;
}

}  // namespace

TEST_CASE("white space behind a call that others may follow may end the answer") {
  for (const ToolDialect* const dialect : tool_dialects()) {
    AnswerForm form;
    form.dialects.tools = dialect;
    const std::string call =
        write_calls(dialect->syntax, {{.name = "ping", .arguments = OrderedJson::object()}});
    for (const bool must_call : {false, true}) {
      for (const bool several : {false, true}) {
        form.tools = {.tools = tools_of_books(), .must_call = must_call, .several = several};
        const auto grammar = compiled(form);
        for (const char* const space : {"\n", " ", "\n\n"}) {
          CAPTURE(dialect->name, call, must_call, several, space);
          // What has an end, or is the only one, ends the answer by itself.
          const bool has_end = dialect->syntax.end.front().kind != CallPart::Kind::kNone;
          CHECK(takes(grammar, call + space) == (several && dialect->syntax.several && !has_end));
          const Heard heard = hear(form.dialects, form.tools.tools, call + space, 1);
          CHECK(heard.calls.size() == 1);
          CHECK(heard.text.empty());
        }
      }
    }
  }
  // What is no call never becomes one.
  AnswerForm form;
  form.dialects.tools = find_tool_dialect("hermes");
  form.tools = {.tools = tools_of_books()};
  const std::string call = "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>";
  CHECK_FALSE(takes(compiled(form), call + "\nDone."));
  CHECK(takes(compiled(form), call + "\n" + call + "\n"));
}

namespace {

const std::string kThought = "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant";
const std::string kPreamble = "<|channel|>commentary<|message|>I check.<|end|><|start|>assistant";
const std::string kFinal = "<|channel|>final<|message|>It is sunny.";

AnswerForm form_of_gpt_oss(bool must_call) {
  AnswerForm form;
  form.dialects = {.tools = find_tool_dialect("gpt_oss"),
                   .reasoning = find_reasoning_dialect("gpt_oss")};
  form.tools = {.tools = tools_of_books(), .must_call = must_call};
  form.reasoning = AnswerForm::Reasoning::kPossible;
  form.marks_text = true;
  return form;
}

}  // namespace

TEST_CASE("gpt-oss names who is spoken to with the role or with the channel") {
  const std::string arguments = R"({"city": "Oslo", "nights": 2})";
  for (const bool must_call : {false, true}) {
    const AnswerForm form = form_of_gpt_oss(must_call);
    const auto grammar = compiled(form);
    for (const std::string& header : {std::string("<|channel|>commentary to=functions.book"),
                                      std::string(" to=functions.book<|channel|>commentary"),
                                      std::string("<|channel|>analysis to=functions.book")}) {
      for (const char* const type : {" <|constrain|>json", " json", "<|constrain|>json", ""}) {
        for (const std::string& before : {std::string(), kThought, kThought + kThought}) {
          const std::string answer = before + header + type + "<|message|>" + arguments;
          CAPTURE(answer, must_call);
          CHECK(takes(grammar, answer));
          for (const size_t chunk : {size_t{1}, size_t{100}}) {
            const Heard heard = hear(form.dialects, form.tools.tools, answer, chunk);
            REQUIRE(heard.calls.size() == 1);
            CHECK(heard.calls[0].name == "book");
            CHECK(heard.calls[0].arguments == arguments);
            CHECK(heard.text.empty());
            CHECK(heard.reasoning.empty() == before.empty());
          }
        }
        CHECK_FALSE(takes(grammar, header + "s" + type + "<|message|>" + arguments));
        CHECK_FALSE(takes(grammar, header + type + "<|message|>{}"));
      }
    }
  }
}

TEST_CASE("gpt-oss says what it calls before it calls") {
  const AnswerForm form = form_of_gpt_oss(false);
  const auto may = compiled(form);
  const std::string call = "<|channel|>commentary to=functions.ping <|constrain|>json<|message|>{}";
  const std::string by_role = " to=functions.ping<|channel|>commentary json<|message|>{}";
  for (const std::string& behind : {call, by_role, kThought + call, kFinal}) {
    for (const std::string& before : {kPreamble, kThought + kPreamble, kPreamble + kPreamble}) {
      CAPTURE(before, behind);
      CHECK(takes(may, before + behind));
      const Heard heard = hear(form.dialects, form.tools.tools, before + behind, 1);
      CHECK(heard.text.starts_with("I check."));
      CHECK(heard.text.ends_with("It is sunny.") == (behind == kFinal));
      CHECK(heard.text.find('<') == std::string::npos);
      CHECK(heard.calls.size() == (behind == kFinal ? 0 : 1));
    }
  }
  CHECK_FALSE(takes(may, kPreamble));
  // A call that is asked for comes at once, and so does what has a form of its own.
  CHECK_FALSE(takes(compiled(form_of_gpt_oss(true)), kPreamble + call));
  CHECK(takes(compiled(form_of_gpt_oss(true)), kThought + call));
}

TEST_CASE("Llama's tokens before and behind a call may be written and left out") {
  const CallTaker json("llama3_json", R"({"properties": {"a": {"type": "integer"}}})");
  CHECK(json(R"({"name": "f", "parameters": {"a": 1}})"));
  CHECK(json(R"(<|python_tag|>{"name": "f", "parameters": {"a": 1}})"));
  CHECK_FALSE(json(R"(<|python_tag|>{"name": "g", "parameters": {"a": 1}})"));
  const CallTaker python("pythonic", R"({"properties": {"a": {"type": "integer"}}})");
  CHECK(python("[f(a=1)]"));
  CHECK(python("<|python_start|>[f(a=1), f(a=2)]<|python_end|>", 2));
  CHECK(python("<|python_start|>[f(a=1)]<|python_end|>"));
  CHECK(python.arguments() == R"({"a": 1})");
}

TEST_CASE("Python's strings stand in either quotes") {
  const char* const parameters = R"json({"type": "object", "properties": {
      "city": {"type": "string"}, "unit": {"enum": ["C", "it's", "a \"b\""]},
      "code": {"type": "string", "pattern": "^[a-z']{3}$"}, "id": {"type": "string", "maxLength": 2},
      "map": {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "boolean"}},
      "free": {"type": "object"}}})json";
  const std::pair<const char*, const char*> kRight[] = {
      {R"(city='Rome')", R"({"city": "Rome"})"},
      {R"(city="it's")", R"({"city": "it's"})"},
      {R"(city='it\'s "x"\n')", R"({"city": "it's \"x\"\n"})"},
      {R"(unit='C')", R"({"unit": "C"})"},
      {R"(unit='it\'s')", R"({"unit": "it's"})"},
      {R"(unit='a "b"')", R"({"unit": "a \"b\""})"},
      {R"(code='abc')", R"({"code": "abc"})"},
      {R"(code="a'c")", R"({"code": "a'c"})"},
      {R"(id='\'"')", R"({"id": "'\""})"},
      {R"(map={'a': None, "b": True, 'c': False})",
       R"({"map": {"a": null, "b": true, "c": false}})"},
      {R"(free={'x': ['y', "z"]})", R"({"free": {"x": ["y", "z"]}})"},
  };
  for (const char* const dialect : {"pythonic", "lfm2"}) {
    const CallTaker takes_call(dialect, parameters, /*strict=*/true);
    const bool is_marked = std::string_view(dialect) == "lfm2";
    const auto written = [&](const std::string& inside) {
      const std::string call = "[f(" + inside + ")]";
      return is_marked ? "<|tool_call_start|>" + call + "<|tool_call_end|>" : call;
    };
    for (const auto& [inside, arguments] : kRight) {
      CAPTURE(dialect, inside);
      CHECK(takes_call(written(inside)));
      CHECK(takes_call.arguments() == arguments);
    }
    for (const char* const wrong : {R"(city='Rome")", R"(city='it's')", R"(unit='K')",
                                    R"(code='abcd')", R"(id='abc')", R"(map={'a: None})"}) {
      CAPTURE(dialect, wrong);
      CHECK_FALSE(takes_call(written(wrong)));
    }
  }
}

TEST_CASE("Qwen3-Coder's first tag may be missing") {
  AnswerForm form;
  form.dialects.tools = find_tool_dialect("qwen3_coder");
  form.tools = {.tools = tools_of_books()};
  const auto may = compiled(form);
  const std::string call =
      "<function=book>\n<parameter=city>\nOslo\n</parameter>\n<parameter=nights>\n2\n"
      "</parameter>\n</function>";
  for (const char* const behind : {"", "\n</tool_call>", "\n</tool_call>\n"}) {
    const std::string answer = "I book.\n" + call + behind;
    CAPTURE(answer);
    CHECK(takes(may, answer));
    const Heard heard = hear(form.dialects, form.tools.tools, answer, 1);
    REQUIRE(heard.calls.size() == 1);
    CHECK(heard.calls[0].arguments == R"({"city": "Oslo", "nights": 2})");
    CHECK(heard.text == "I book.");
  }
  CHECK(takes(may, call + "\n</tool_call>\n" + call + "\n</tool_call>"));
  CHECK_FALSE(takes(may, "<function=bork>\n</function>"));
}

}  // namespace tgi::dialect
