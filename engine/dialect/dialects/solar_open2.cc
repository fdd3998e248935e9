// Solar Open 2: each argument between tokens, each on a line.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"solar_open2">() {
  static constexpr ToolDialect kThis{
      .name = "solar_open2",
      .syntax = {.call = {mark("<|tool_call:start|>"), name(), line_end(),
                          parameters("<|tool_arg:start|>", "<|tool_arg:value|>", "<|tool_arg:end|>",
                                     /*on_lines=*/false),
                          mark("<|tool_call:end|>")},
                 .separator = {gap()}},
      .ends_reasoning = true,
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tool_arg:start|>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"solar_open2">() {
  static constexpr ReasoningDialect kThis{
      .name = "solar_open2",
      .begin = "<|think:start|>",
      .end = "<|think:end|>",
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<|think:start|>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
