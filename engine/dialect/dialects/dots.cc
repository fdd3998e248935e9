// Dots: as MiniMax M2 with another tag around the calls.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"dots">() {
  static constexpr ToolDialect kThis{
      .name = "dots",
      .syntax = {.begin = {mark("<dots_function_call>"), gap()},
                 .call = {mark("<invoke name=\""), name(), mark("\">"),
                          parameters("<parameter name=\"", "\">", "</parameter>",
                                     /*on_lines=*/false),
                          mark("</invoke>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</dots_function_call>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<dots_function_call>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
