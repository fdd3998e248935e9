// The variables of templates that reasoning_effort sets.
#include "engine/dialect/reasoning_effort.h"

#include "tests/catch.h"

namespace tgi::dialect {

TEST_CASE("effort_says_to_templates_whether_to_reason") {
  using Json = nlohmann::ordered_json;
  const auto variables = [](const ReasoningDialect* dialect, const char* effort, Json given) {
    add_reasoning_effort(dialect, effort, given);
    return given;
  };
  const Json off = {{"reasoning_effort", "none"}, {"enable_thinking", false}, {"thinking", false}};
  CHECK(variables(nullptr, "none", Json::object()) == off);
  CHECK(variables(&reasoning_dialect<"think">(), "none", Json::object()) == off);
  CHECK(variables(nullptr, "high", Json::object())["enable_thinking"] == true);

  // The template of MiniMax M3 asks for thinking_mode alone.
  const ReasoningDialect* minimax = &reasoning_dialect<"minimax_m3">();
  CHECK(variables(minimax, "none", Json::object())["thinking_mode"] == "disabled");
  CHECK(variables(minimax, "low", Json::object())["thinking_mode"] == "enabled");
  CHECK(variables(minimax, "none", {{"thinking_mode", "adaptive"}})["thinking_mode"] == "adaptive");
}

}  // namespace tgi::dialect
