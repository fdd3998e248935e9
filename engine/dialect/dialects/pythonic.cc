// Llama 3.2 and 4, ToolACE, Gemma 3: calls as a list of Python, which Llama 4 may put between two
// tokens.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

namespace {

constexpr CallSyntax kPythonicOthers[] = {{
    .begin = {mark("<|python_start|>"), mark("[")},
    .call = {name(), mark("("), keywords(), mark(")")},
    .separator = {gap(), mark(","), gap()},
    .end = {gap(), mark("]"), mark("<|python_end|>")},
    .is_taken = true,
}};

}  // namespace

template <>
const ToolDialect& tool_dialect<"pythonic">() {
  static constexpr ToolDialect kThis{
      .name = "pythonic",
      .syntax = {.begin = {mark("[")},
                 .call = {name(), mark("("), keywords(), mark(")")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]")},
                 .place = CallPlace::kWholeAnswer},
      .also = kPythonicOthers,
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "[func_name1("); },
  };
  return kThis;
}

}  // namespace tgi::dialect
