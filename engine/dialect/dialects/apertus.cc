// Apertus: a list of objects whose only key is the name, often in the midst of the reasoning.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"apertus">() {
  static constexpr ToolDialect kThis{
      .name = "apertus",
      .syntax = {.begin = {mark("<|tools_prefix|>"), gap(), mark("["), gap()},
                 .call = {mark("{"), gap(), mark("\""), name(), mark("\""), gap(), mark(":"), gap(),
                          arguments(), gap(), mark("}")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("<|tools_suffix|>")}},
      .ends_reasoning = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tools_prefix|>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"apertus">() {
  static constexpr ReasoningDialect kThis{
      .name = "apertus",
      .begin = "<|inner_prefix|>",
      .end = "<|inner_suffix|>",
      .dropped = {"<|inner_suffix|>"},
      .is_anywhere = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|inner_prefix|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
