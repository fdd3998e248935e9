// Hunyuan A13B and Jamba: a list between tags. Hunyuan's answer stands between tags too.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"hunyuan">() {
  static constexpr ToolDialect kThis{
      .name = "hunyuan",
      .syntax = {.begin = {mark("<tool_calls>"), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("</tool_calls>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<tool_calls>"); },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"hunyuan">() {
  static constexpr ReasoningDialect kThis{
      .name = "hunyuan",
      .begin = "<think>",
      .end = "</think>",
      .dropped = {"<answer>\n", "\n</answer>", "<answer>", "</answer>"},
      // The templates of the first models, with and without experts, show neither.
      .speaks =
          [](const ChatTemplate& chat_template) {
            return (shows(chat_template, "<|extra_0|>") && shows(chat_template, "<|extra_4|>")) ||
                   shows(chat_template, "<｜hy_Assistant｜>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
