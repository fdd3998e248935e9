// What an answer has to be, in the spellings of five servers, as the daemon is told.
#include "cmd/http/guide_body.h"

#include "cmd/http/native_body.h"
#include "cmd/http/openai_body.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

ApiOptions guide_options(bool supports_grammars = true) {
  ApiOptions out;
  out.max_input_tokens = 31;
  out.max_total_tokens = 32;
  out.supports_grammars = supports_grammars;
  return out;
}

std::optional<ipc::GuideParams> guide_of_chat(const std::string& members,
                                              bool supports_grammars = true) {
  const std::string body = R"({"messages": [{"role": "user", "content": "hi"}], )" + members + "}";
  return to_daemon(read_body<ChatBody>(OrderedJson::parse(body)), guide_options(supports_grammars))
      .params.guide;
}

std::optional<ipc::GuideParams> guide_of_native(const std::string& parameters) {
  const std::string body = R"({"inputs": "hi", "parameters": {)" + parameters + "}}";
  const auto read = read_body<GenerateBody>(OrderedJson::parse(body));
  check_parameters(*read.parameters, "hi", false, guide_options());
  return to_daemon(*read.parameters, "hi", false, guide_options()).params.guide;
}

// As the wire has it, so that rows are short.
std::string told(const std::optional<ipc::GuideParams>& guide) {
  if (!guide) return "nothing";
  if (guide->json_schema) return "json_schema " + guide->json_schema->dump();
  if (guide->json_object) return "json_object";
  if (guide->regex) return "regex " + *guide->regex;
  if (guide->gbnf) return "gbnf " + *guide->gbnf;
  if (guide->lark) return "lark " + *guide->lark;
  return "choice " + fmt::format("{}", fmt::join(guide->choice, "|"));
}

std::string guide_refusal(const auto& ask) {
  try {
    (void)ask();
  } catch (const ApiError& error) {
    CHECK(error.status() == 422);
    return error.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("each spelling of an answer's form reaches the daemon as the same thing") {
  struct Row {
    const char* members;
    const char* guide;
  };
  const std::string schema = R"({"type":"object"})";
  const Row row = GENERATE(
      Row{R"("response_format": {"type": "text"})", "nothing"},
      Row{R"("response_format": null)", "nothing"},
      Row{R"("response_format": {"type": "text", "json_schema": null})", "nothing"},
      Row{R"("response_format": {"type": "json_object", "json_schema": null})", "json_object"},
      Row{R"("structured_outputs": {"choice": ["x"], "structural_tag": null})", "choice x"},
      Row{R"("structured_outputs": {"choice": ["x"], "whitespace_pattern": null})", "choice x"},
      Row{R"("grammar": "")", "nothing"},
      Row{R"("response_format": {"type": "json_object"})", "json_object"},
      Row{R"("response_format": {"type": "json_object", "schema": {"type": "object"}})",
          R"(json_schema {"type":"object"})"},
      Row{R"("response_format": {"type": "json_object", "value": {"type": "object"}})",
          R"(json_schema {"type":"object"})"},
      Row{R"("response_format": {"type": "json", "value": {"type": "object"}})",
          R"(json_schema {"type":"object"})"},
      Row{R"("response_format": {"type": "json", "value": "{\"type\": \"object\"}"})",
          R"(json_schema {"type":"object"})"},
      Row{R"("response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": true,
              "description": "d", "schema": {"type": "object"}}})",
          R"(json_schema {"type":"object"})"},
      Row{R"("response_format": {"type": "json_schema", "value": {"name": "a", "schema": {}}})",
          "json_schema {}"},
      Row{R"("response_format": {"type": "json_schema", "schema": {"type": "object"}})",
          R"(json_schema {"type":"object"})"},
      Row{R"("response_format": {"type": "regex", "value": "a+"})", "regex a+"},
      Row{R"("grammar": {"type": "regex", "value": "a+"})", "regex a+"},
      Row{R"("grammar": "root ::= \"a\"")", "gbnf root ::= \"a\""},
      Row{R"("grammar": "start: \"a\"")", "lark start: \"a\""},
      Row{R"("json_schema": {"type": "object"})", R"(json_schema {"type":"object"})"},
      Row{R"("guided_json": "{\"type\": \"object\"}")", R"(json_schema {"type":"object"})"},
      Row{R"("guided_json": true)", "json_schema {}"},
      Row{R"("guided_regex": "[ab]")", "regex [ab]"},
      Row{R"("guided_choice": ["a", "b c"])", "choice a|b c"},
      Row{R"("guided_grammar": "root ::= [a]")", "gbnf root ::= [a]"},
      Row{R"("structured_outputs": {"choice": ["a"]})", "choice a"},
      Row{R"("regex": "[ab]")", "regex [ab]"},
      Row{R"("ebnf": "root ::= [a]")", "gbnf root ::= [a]"},
      Row{R"("structured_outputs": {"json": {"type": "object"}, "regex": null})",
          R"(json_schema {"type":"object"})"},
      Row{R"("structured_outputs": {"json_object": true})", "json_object"},
      Row{R"("structured_outputs": {"regex": "a", "disable_any_whitespace": true})", "regex a"},
      Row{R"("structured_outputs": {"json_object": true, "whitespace_pattern": "[ ]?"})",
          "json_object"},
      Row{R"("structured_outputs": {"grammar": "root ::= [a]"})", "gbnf root ::= [a]"});
  CAPTURE(row.members);
  CHECK(told(guide_of_chat(row.members)) == row.guide);
}

TEST_CASE("TGI's and LoRAX's own routes have theirs") {
  CHECK(told(guide_of_native(R"("grammar": {"type": "json", "value": {"type": "object"}})")) ==
        R"(json_schema {"type":"object"})");
  CHECK(told(guide_of_native(
            R"("grammar": {"type": "json_schema", "value": {"name": "a", "schema": {}}})")) ==
        "json_schema {}");
  CHECK(told(guide_of_native(R"("grammar": {"type": "regex", "value": "x"})")) == "regex x");
  CHECK(told(guide_of_native(
            R"("response_format": {"type": "json_object", "schema": {"type": "object"}})")) ==
        R"(json_schema {"type":"object"})");
  CHECK(told(guide_of_native(R"("grammar": null)")) == "nothing");
}

TEST_CASE("a form of an answer that nobody knows is refused where it stands") {
  struct Row {
    const char* members;
    const char* problem;
  };
  const Row row = GENERATE(
      Row{R"("response_format": "text")", "response_format: invalid type: string"},
      Row{R"("response_format": {})", "response_format.type: missing field"},
      Row{R"("response_format": {"type": "xml"})", "response_format.type: unknown type `xml`"},
      Row{R"("response_format": {"type": "text", "schema": {}})",
          "response_format.schema: unknown field"},
      Row{R"("response_format": {"type": "json_schema"})",
          "response_format.json_schema: missing field"},
      Row{R"("response_format": {"type": "json_schema", "json_schema": {}})",
          "response_format.json_schema.schema: missing field"},
      Row{R"("response_format": {"type": "json_schema", "json_schema": {"name": "a"}})",
          "response_format.json_schema.schema: missing field"},
      Row{R"("response_format": {"type": "json_schema", "value": {"name": "a"}})",
          "response_format.value.schema: missing field"},
      Row{R"("response_format": {"type": "json_schema", "json_schema": {"strict": "yes", "schema": {}}})",
          "response_format.json_schema.strict: invalid type: string, expected a boolean"},
      Row{R"("response_format": {"type": "json_schema", "strict": 1, "schema": {}})",
          "response_format.strict: invalid type: number"},
      Row{R"("response_format": {"type": "json_schema", "json_schema": {"shema": {}}})",
          "response_format.json_schema.shema: unknown field"},
      Row{R"("response_format": {"type": "json_schema", "json_schema": {"schema": 7}})",
          "response_format.json_schema.schema: invalid type: number"},
      Row{R"("grammar": {"type": "json", "value": "no json"})",
          "grammar.value: the text is not a JSON schema"},
      Row{R"("guided_json": "{\"minimum\": 1e400}")",
          "guided_json: the text is not a JSON schema: not valid JSON at line 1"},
      Row{R"("guided_json": "7")", "expected an object written as JSON"},
      Row{R"("grammar": {"type": "regex"})", "grammar.value: missing field"},
      Row{R"("grammar": {"type": "regex", "value": 7})", "grammar.value: invalid type: number"},
      Row{R"("grammar": 7)", "grammar: invalid type: number"},
      Row{R"("guided_choice": [])", "guided_choice: expected at least one text"},
      Row{R"("guided_choice": ["a", 7])", "guided_choice[1]: invalid type: number"},
      Row{R"("guided_json": false)", "nothing satisfies the schema `false`"},
      Row{R"("structured_outputs": {})", "expected exactly one of json"},
      Row{R"("structured_outputs": {"regex": "a", "choice": ["a"]})", "got 2"},
      Row{R"("structured_outputs": {"structural_tag": "x"})",
          "structured_outputs.structural_tag: unknown field"},
      Row{R"("structured_outputs": {"json_object": true, "whitespace_pattern": "\\s+"})",
          "structured_outputs.whitespace_pattern: expected \"\" or \"[ ]?\""},
      Row{R"("guided_regex": "a", "response_format": {"type": "json_object"})",
          "`response_format` and `guided_regex` both say what the answer has to be"});
  CAPTURE(row.members);
  CHECK_THAT(guide_refusal([&] { return guide_of_chat(row.members); }),
             Catch::Contains(row.problem));
}

TEST_CASE("a schema in a text is told what JSON may be") {
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  CHECK_THAT(guide_refusal([&] { return guide_of_chat("\"guided_json\": \"" + deep + "\""); }),
             Catch::Contains("JSON nests deeper than 64 levels"));
  std::string wide = "{";
  for (int i = 0; i < 3000; ++i)
    wide += (i > 0 ? ",\\\"k" : "\\\"k") + std::to_string(i) + "\\\": {}";
  CHECK(guide_of_chat("\"guided_json\": \"{\\\"properties\\\": " + wide + "}}\"")
            ->json_schema->at("properties")
            .size() == 3000);
}

TEST_CASE("an answer of a form has at least one token") {
  const auto ask = [](const std::string& members) {
    const std::string body = R"({"prompt": "a", "max_tokens": 0)" + members + "}";
    return to_daemon(read_body<CompletionBody>(OrderedJson::parse(body)), guide_options());
  };
  CHECK(ask("").size() == 1);
  CHECK_THAT(guide_refusal([&] { return ask(R"(, "guided_regex": "a")"); }),
             Catch::Contains("`max_tokens` must be strictly positive where the answer has a form"));
}

TEST_CASE("a grammar may begin with a byte order mark") {
  CHECK(told(guide_of_chat("\"guided_grammar\": \"\xEF\xBB\xBFroot ::= [a]\"")) ==
        "gbnf root ::= [a]");
}

TEST_CASE("a server without grammars says so, and takes what asks for none") {
  CHECK(guide_refusal([] { return guide_of_chat(R"("guided_regex": "a")", false); }) ==
        "Input validation error: grammar is not supported");
  CHECK_FALSE(guide_of_chat(R"("response_format": {"type": "text"})", false));
}

}  // namespace tgi::http
