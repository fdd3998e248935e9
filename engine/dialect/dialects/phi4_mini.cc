// Phi 4 mini: a list between two tokens.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"phi4_mini">() {
  static constexpr ToolDialect kThis{
      .name = "phi4_mini",
      .syntax = {.begin = {mark("<|tool_call|>"), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("<|/tool_call|>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<|/tool_call|>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
