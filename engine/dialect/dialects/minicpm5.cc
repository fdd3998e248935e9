// MiniCPM 5: each argument between tags, texts that would confuse them in a section of their own.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"minicpm5">() {
  static constexpr ToolDialect kThis{
      .name = "minicpm5",
      .syntax = {.call = {mark("<function name=\""), name(), mark("\">"),
                          parameters_with_sections("<param name=\"", "\">", "</param>", "<![CDATA[",
                                                   "]]>"),
                          mark("</function>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<function name="); },
  };
  return kThis;
}

}  // namespace tgi::dialect
