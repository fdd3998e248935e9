// MiniMax M3: arguments as elements, a mark before each tag.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"minimax_m3">() {
  static constexpr ToolDialect kThis{
      .name = "minimax_m3",
      .syntax = {.begin = {mark("]<]minimax[>[<tool_call>"), gap()},
                 .call = {mark("]<]minimax[>[<invoke name=\""), name(), mark("\">"),
                          elements("]<]minimax[>["), mark("]<]minimax[>[</invoke>")},
                 .separator = {gap()},
                 .end = {gap(), mark("]<]minimax[>[</tool_call>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "]<]minimax[>["); },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"minimax_m3">() {
  static constexpr ReasoningDialect kThis{
      .name = "minimax_m3",
      .begin = "<mm:think>",
      .end = "</mm:think>",
      .mode = {.variable = "thinking_mode", .on = "enabled", .off = "disabled"},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "</mm:think>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
