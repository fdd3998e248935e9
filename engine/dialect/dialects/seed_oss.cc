// Seed-OSS.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"seed_oss">() {
  static constexpr ToolDialect kThis{
      .name = "seed_oss",
      .syntax = {.call = {mark("<seed:tool_call>"), gap(), mark("<function="), name(), mark(">"),
                          parameters("<parameter=", ">", "</parameter>", /*on_lines=*/false),
                          mark("</function>"), gap(), mark("</seed:tool_call>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<seed:tool_call>");
          },
  };
  return kThis;
}

template <>
const ReasoningDialect& reasoning_dialect<"seed_oss">() {
  static constexpr ReasoningDialect kThis{
      .name = "seed_oss",
      .begin = "<seed:think>",
      .end = "</seed:think>",
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "seed:think"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
