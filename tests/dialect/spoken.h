// Answers as a model would have written them, read by a dialect.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/dialect/answer_reader.h"
#include "engine/dialect/dialect.h"
#include "engine/dialect/marked_text.h"
#include "engine/dialect/tools.h"

namespace tgi::dialect {

struct Heard {
  std::string text;
  std::string reasoning;
  std::vector<ipc::ToolCall> calls;
  std::vector<AnswerReader::BrokenCall> broken;
};

// tests/dialect/golden/turns.json: {tools, turns}.
OrderedJson golden_turns();
std::string stripped(std::string text);

struct SpokenTurn {
  Dialects dialects;
  std::string text;
  std::string prompt;
  bool begun = false;  // it begins within the reasoning
};
std::optional<SpokenTurn> spoken_turn(const OrderedJson& turn);  // none: of no dialect of ours

// As most vocabularies have them: what is written <|...|>, <｜...｜> or [IN_CAPITALS] is a special
// token, and MiniMax's mark before tags; tags are not.
bool is_usual_special(std::string_view name);

const ToolDialect* find_tool_dialect(std::string_view name);
const ReasoningDialect* find_reasoning_dialect(std::string_view name);

// `chunk`: bytes of ordinary text that come at once.
Heard hear(const Dialects& dialects,
           const std::vector<Tool>& tools,
           std::string_view answer,
           size_t chunk,
           bool starts_in_reasoning = false,
           const IsSpecialToken& is_special = is_usual_special);

}  // namespace tgi::dialect
