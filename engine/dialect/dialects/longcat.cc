// LongCat Flash Chat: as Hermes with another tag.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"longcat">() {
  static constexpr ToolDialect kThis{
      .name = "longcat",
      .syntax = {.call = {mark("<longcat_tool_call>"), gap(), object("name", "arguments"), gap(),
                          mark("</longcat_tool_call>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<longcat_tool_call>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
