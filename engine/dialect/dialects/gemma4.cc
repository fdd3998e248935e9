// Gemma 4: names bare, texts between marks of their own; reasoning in a channel.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"gemma4">() {
  static constexpr ToolDialect kThis{
      .name = "gemma4",
      .syntax = {.call = {mark("<|tool_call>"), mark("call:"), name(), mark("{"), entries("<|\"|>"),
                          mark("}"), mark("<tool_call|>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<|tool_call>"); },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"gemma4">() {
  static constexpr ReasoningDialect kThis{
      .name = "gemma4",
      .begin = "<|channel>thought\n",
      .end = "<channel|>",
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<channel|>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
