// Hermes 2 and 3, Qwen 2.5 and 3, QwQ, Granite 4, and many that were trained after them.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"hermes">() {
  static constexpr ToolDialect kThis{
      .name = "hermes",
      .syntax = {.call = {mark("<tool_call>"), gap(), object("name", "arguments"), gap(),
                          mark("</tool_call>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<tool_call>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
