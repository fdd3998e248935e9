// Kimi K2: the name as functions.NAME:NUMBER, which is the call's id.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"kimi_k2">() {
  static constexpr ToolDialect kThis{
      .name = "kimi_k2",
      .syntax = {.begin = {mark("<|tool_calls_section_begin|>")},
                 .call = {mark("<|tool_call_begin|>"), gap(), mark("functions."), name(), mark(":"),
                          number(), gap(), mark("<|tool_call_argument_begin|>"), gap(), arguments(),
                          gap(), mark("<|tool_call_end|>")},
                 .separator = {gap()},
                 .end = {gap(), mark("<|tool_calls_section_end|>")}},
      .ids = CallIds::kFunction,
      .ends_reasoning = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tool_calls_section_begin|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
