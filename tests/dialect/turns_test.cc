// Turns that the chat templates of real models write for given calls are read back as these calls.
// Golden: scripts/golden/make_dialects.py.
#include <map>

#include "tests/catch.h"
#include "tests/dialect/spoken.h"

namespace tgi::dialect {
TEST_CASE("turns that templates write are read back as the calls they were written from") {
  const OrderedJson json = golden_turns();
  const std::vector<Tool> tools =
      tool_use(checked_tools(json["tools"]), std::nullopt, /*parallel=*/true).tools;
  std::map<std::string, int> num_turns;
  for (const OrderedJson& turn : json["turns"]) {
    const auto& name = turn["dialect"].get_ref<const std::string&>();
    const std::optional<SpokenTurn> spoken = spoken_turn(turn);
    if (!spoken) continue;  // none of ours
    ++num_turns[name];
    const std::string reasoning = turn["reasoning"];
    const auto& [dialects, text, prompt, begun] = *spoken;
    for (const size_t chunk : {size_t{1}, size_t{3}, size_t{7}, text.size() + 1}) {
      CAPTURE(turn["model"].get<std::string>(), turn["case"].get<std::string>(), text, prompt,
              chunk);
      const Heard heard = hear(dialects, tools, text, chunk, begun);
      const OrderedJson& calls = turn["calls"];
      CHECK(heard.calls.size() == calls.size());
      for (size_t i = 0; i < std::min(heard.calls.size(), calls.size()); ++i) {
        CHECK(heard.calls[i].name == calls[i]["name"].get<std::string>());
        // Some templates sort the arguments.
        CHECK(nlohmann::json::parse(heard.calls[i].arguments, nullptr, false) ==
              nlohmann::json::parse(calls[i]["arguments"].dump()));
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
