// Apriel: a list between tags, and reasoning that ends with a line of its own.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"apriel">() {
  static constexpr ToolDialect kThis{
      .name = "apriel",
      .syntax = {.begin = {mark("<tool_calls>"), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("</tool_calls>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<tool_calls>") &&
                   shows(chat_template, "[BEGIN FINAL RESPONSE]");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"apriel">() {
  static constexpr ReasoningDialect kThis{
      .name = "apriel",
      .begin = "Here are my reasoning steps:",
      .end = "[BEGIN FINAL RESPONSE]",
      .dropped = {"[END FINAL RESPONSE]"},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "[BEGIN FINAL RESPONSE]");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
