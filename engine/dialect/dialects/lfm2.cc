// LFM2: calls in Python between two tokens.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"lfm2">() {
  static constexpr ToolDialect kThis{
      .name = "lfm2",
      .syntax = {.begin = {mark("<|tool_call_start|>"), gap(), mark("["), gap()},
                 .call = {name(), mark("("), keywords(), mark(")")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("<|tool_call_end|>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tool_call_start|>") ||
                   shows(chat_template, "<|tool_list_start|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
