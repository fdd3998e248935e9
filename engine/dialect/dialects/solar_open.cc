// Solar Open: each part behind a token.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"solar_open">() {
  static constexpr ToolDialect kThis{
      .name = "solar_open",
      .syntax = {.begin = {mark("<|tool_calls|>")},
                 .call = {mark("<|tool_call:begin|>"), id(), mark("<|tool_call:name|>"), name(),
                          mark("<|tool_call:args|>"), arguments(), mark("<|tool_call:end|>")},
                 .separator = {gap()},
                 .end = {gap(), mark("<|calls|>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tool_call:begin|>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"solar_open">() {
  static constexpr ReasoningDialect kThis{
      .name = "solar_open",
      .begin = "<|think|>",
      .end = "<|end|>",
      .dropped = {"<|begin|>assistant", "<|content|>"},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tool_call:begin|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
