// Granite 3: a list behind a token.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"granite">() {
  static constexpr ToolDialect kThis{
      .name = "granite",
      .syntax = {.begin = {mark("<|tool_call|>", {"<tool_call>"}), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tool_call|>") &&
                   shows(chat_template, "<|start_of_role|>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"granite">() {
  static constexpr ReasoningDialect kThis{
      .name = "granite",
      .begin = "Here is my thought process:",
      .end = "Here is my response:",
      .other_begins = {"Here's my thought process:"},
      .other_ends = {"Here's my response:"},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "Here is my thought process:");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
