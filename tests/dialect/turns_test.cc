// Turns that the chat templates of real models write for given calls are read back as these calls.
// Golden: scripts/golden/make_dialects.py.
#include <fstream>
#include <map>

#include "tests/catch.h"
#include "tests/dialect/spoken.h"

namespace tgi::dialect {
namespace {

OrderedJson golden() {
  std::ifstream file(TGI_SOURCE_DIR "/tests/dialect/golden/turns.json");
  return OrderedJson::parse(file);
}

std::string stripped(std::string text) {
  while (!text.empty() && is_json_space(text.back())) text.pop_back();
  while (!text.empty() && is_json_space(text.front())) text.erase(0, 1);
  return text;
}

// The one whose marks are there, or that goes with the way to write calls.
const ReasoningDialect* reasoning_of(const std::string& name, const std::string& text) {
  for (const ReasoningDialect* const each : reasoning_dialects()) {
    if (text.find(each->end) != std::string::npos) return each;
  }
  for (const ReasoningDialect* const each : reasoning_dialects()) {
    if (text.find(each->begin) != std::string::npos) return each;
  }
  const ReasoningDialect* const by_name = find_reasoning_dialect(name);
  return by_name != nullptr ? by_name : find_reasoning_dialect("think");
}

// Whether the text begins within the reasoning. Of turns that were rendered as earlier ones the
// prompt does not tell: it opens or closes the reasoning otherwise than they do.
bool is_begun(const ReasoningDialect& reasoning,
              const OrderedJson& turn,
              const std::string& prompt,
              const std::string& text) {
  if (!turn.value("history", false))
    return prompt.ends_with(stripped(std::string(reasoning.begin)));
  const size_t end = text.find(reasoning.end);
  return end != std::string::npos && text.find(reasoning.begin) >= end;
}

}  // namespace

TEST_CASE("turns that templates write are read back as the calls they were written from") {
  const OrderedJson json = golden();
  const std::vector<Tool> tools =
      tool_use(checked_tools(json["tools"]), std::nullopt, /*parallel=*/true).tools;
  std::map<std::string, int> num_turns;
  for (const OrderedJson& turn : json["turns"]) {
    const auto& name = turn["dialect"].get_ref<const std::string&>();
    Dialects dialects{.tools = find_tool_dialect(name)};
    if (dialects.tools == nullptr) continue;  // none of ours
    ++num_turns[name];
    const std::string reasoning = turn["reasoning"];
    const std::string text = turn["text"];
    const std::string prompt = stripped(turn["prompt"]);
    dialects.reasoning = reasoning_of(name, prompt + text);
    const bool begun = is_begun(*dialects.reasoning, turn, prompt, text);
    for (const size_t chunk : {size_t{1}, size_t{3}, size_t{7}, text.size() + 1}) {
      CAPTURE(turn["model"].get<std::string>(), turn["case"].get<std::string>(), text, prompt,
              chunk);
      const Heard heard = hear(dialects, tools, text, chunk, begun);
      const OrderedJson& calls = turn["calls"];
      CHECK(heard.calls.size() == calls.size());
      for (size_t i = 0; i < std::min(heard.calls.size(), calls.size()); ++i) {
        CHECK(heard.calls[i].name == calls[i]["name"].get<std::string>());
        CHECK(OrderedJson::parse(heard.calls[i].arguments, nullptr, false) ==
              calls[i]["arguments"]);
      }
      CHECK(stripped(heard.text) == stripped(turn["content"]));
      CHECK(stripped(heard.reasoning) == stripped(reasoning));
      CHECK(heard.broken.empty());
    }
  }
  for (const auto& [name, count] : num_turns) {
    CAPTURE(name);
    CHECK(count >= 5);
  }
  CHECK(num_turns.size() >= 18);
}

}  // namespace tgi::dialect
