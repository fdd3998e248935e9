#include "cmd/http/tools_body.h"

#include <string>
#include <vector>

#include "cmd/http/api_error.h"
#include "tests/catch.h"

namespace tgi::http::tools_body_test {
namespace {

const char* const kTwoTools =
    R"([{"type":"function","function":{"name":"look"}},{"type":"function","function":{"name":"ping"}}])";

ToolsAsked asked(const std::string& choice, const std::string& tools = kTwoTools) {
  ToolFields fields;
  if (!tools.empty()) fields.tools = OrderedJson::parse(tools);
  if (!choice.empty()) fields.tool_choice = OrderedJson::parse(choice);
  return tools_of(fields, /*supports_grammars=*/true);
}

std::string refusal(const std::string& choice, const std::string& tools = kTwoTools) {
  try {
    (void)asked(choice, tools);
  } catch (const ApiError& error) {
    return error.what();
  }
  return "";
}

ReasoningAsked reasoning(const std::string& json) {
  ReasoningFields fields;
  fields.reasoning = OrderedJson::parse(json);
  return reasoning_of(fields);
}

}  // namespace

TEST_CASE("every spelling of tool_choice comes to a mode and names") {
  struct Row {
    const char* choice;
    const char* mode;
    std::vector<std::string> names;
    bool parallel;
  };
  const Row row = GENERATE(
      Row{R"("auto")", "auto", {}, true}, Row{R"("required")", "required", {}, true},
      Row{R"("any")", "required", {}, true}, Row{R"("look")", "required", {"look"}, false},
      Row{R"({"type":"function","function":{"name":"ping"}})", "required", {"ping"}, false},
      Row{R"({"type":"function","name":"ping"})", "required", {"ping"}, false},
      Row{R"({"type":null,"function":{"name":"ping"}})", "required", {"ping"}, false},
      Row{R"({"type":"allowed_tools","mode":null,"tools":[{"type":null,"name":"ping"}]})",
          "auto",
          {"ping"},
          true},
      Row{R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function",)"
          R"("function":{"name":"ping"}}]}})",
          "auto",
          {"ping"},
          true},
      Row{R"({"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"look"},)"
          R"({"type":"function","name":"ping"}]})",
          "required",
          {"look", "ping"},
          true});
  CAPTURE(row.choice);
  const ToolsAsked out = asked(row.choice);
  REQUIRE(out.choice);
  CHECK(out.choice->mode == row.mode);
  CHECK(out.choice->names == row.names);
  CHECK(out.parallel == row.parallel);
  REQUIRE(out.tools);
  CHECK(out.tools->size() == 2);
}

TEST_CASE("a tool may be called as the word that asks for any of them") {
  const ToolsAsked out = asked(R"("any")", R"([{"type":"function","function":{"name":"any"}}])");
  CHECK(out.choice->names == std::vector<std::string>{"any"});
  CHECK_FALSE(out.parallel);
  CHECK_THAT(refusal(R"("any")", "[]"), Catch::Contains("there are no tools"));
}

TEST_CASE("none and no tools are as if nothing had been said of tools") {
  for (const ToolsAsked& out : {asked(R"("none")"), asked("", "[]"), asked(R"("auto")", "[]")}) {
    CHECK_FALSE(out.tools);
    CHECK((!out.choice || out.choice->mode == "none"));
  }
  CHECK_FALSE(asked("").choice);
}

TEST_CASE("a choice of what is no tool is refused in the words of TGI") {
  CHECK(refusal(R"("find")") == "Tool error: Tool with name find not found");
  CHECK(refusal(R"({"type":"function","function":{"name":"find"}})") ==
        "Tool error: Tool with name find not found");
  CHECK(refusal(R"("look")", "[]") == "Tool error: Tool with name look not found");
  CHECK_THAT(refusal(R"("required")", ""), Catch::Contains("there are no tools"));
  CHECK_THAT(refusal("7"), Catch::Contains("tool_choice: invalid type"));
  CHECK_THAT(refusal(R"({"type":"function","function":{}})"),
             Catch::Contains("tool_choice.function.name: missing field"));
  CHECK_THAT(refusal(R"({"type":"custom","name":"look"})"), Catch::Contains("tool_choice.type"));
  CHECK_THAT(refusal(R"({"type":"allowed_tools","mode":"none","tools":[]})"),
             Catch::Contains("tool_choice.mode: expected auto or required"));
  CHECK_THAT(refusal(R"({"type":"allowed_tools","tools":[]})"),
             Catch::Contains("tool_choice.tools: expected a list"));
}

TEST_CASE("reasoning in the words of OpenAI, OpenRouter and vLLM") {
  CHECK(reasoning(R"({"effort":"high","max_tokens":9})").effort == "high");
  CHECK(reasoning(R"({"effort":"high","max_tokens":9})").max_tokens == 9);
  CHECK_FALSE(reasoning(R"({"exclude":true})").is_told);
  CHECK(reasoning(R"({"enabled":false})").effort == "none");
  CHECK_FALSE(reasoning(R"({"enabled":true,"effort":null})").effort);
  CHECK_THROWS_AS(reasoning(R"({"effort":"much"})"), ApiError);
  CHECK_THROWS_AS(reasoning(R"({"max_tokens":-1})"), ApiError);
  CHECK_THROWS_AS(reasoning(R"({"tokens":1})"), ApiError);
  CHECK_THROWS_AS(reasoning("[]"), ApiError);
  ReasoningFields fields;
  fields.thinking_token_budget = 3;
  fields.include_reasoning = false;
  CHECK(reasoning_of(fields).max_tokens == 3);
  CHECK_FALSE(reasoning_of(fields).is_told);
  fields.thinking_token_budget = -1;  // no limit
  CHECK_FALSE(reasoning_of(fields).max_tokens);
  fields.thinking_token_budget = -2;
  CHECK_THROWS_AS(reasoning_of(fields), ApiError);
  fields.thinking_token_budget.reset();
  fields.reasoning_effort = "ultra";
  CHECK_THROWS_AS(reasoning_of(fields), ApiError);
}

}  // namespace tgi::http::tools_body_test
