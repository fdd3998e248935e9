// GigaChat 3.5: as DeepSeek V4 with other tags.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"gigachat35">() {
  static constexpr ToolDialect kThis{
      .name = "gigachat35",
      .syntax = {.begin = {mark("<｜GCML｜tool_calls>"), gap()},
                 .call = {mark("<｜GCML｜invoke name=\""), name(), mark("\">"),
                          typed_parameters("<｜GCML｜parameter name=\"", "\" string=\"true\">",
                                           "\" string=\"false\">", "</｜GCML｜parameter>"),
                          mark("</｜GCML｜invoke>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</｜GCML｜tool_calls>")}},
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "｜GCML｜"); },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"gigachat35">() {
  static constexpr ReasoningDialect kThis{
      .name = "gigachat35",
      .begin = "<think>",
      .end = "</think>",
      .mode = {.variable = "reasoning", .on = "true", .off = ""},
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "｜GCML｜"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
