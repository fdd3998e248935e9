// Command R7B and Command A.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"command_r7b">() {
  static constexpr ToolDialect kThis{
      .name = "command_r7b",
      .syntax = {.begin = {mark("<|START_ACTION|>"), gap(), mark("["), gap()},
                 .call = {object("tool_name", "parameters", "tool_call_id")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("<|END_ACTION|>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|START_ACTION|>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"command_r7b">() {
  static constexpr ReasoningDialect kThis{
      .name = "command_r7b",
      .begin = "<|START_THINKING|>",
      .end = "<|END_THINKING|>",
      .dropped = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
      .is_anywhere = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|START_THINKING|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
