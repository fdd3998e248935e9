// MiniMax M2.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"minimax_m2">() {
  static constexpr ToolDialect kThis{
      .name = "minimax_m2",
      .syntax = {.begin = {mark("<minimax:tool_call>"), gap()},
                 .call = {mark("<invoke name=\""), name(), mark("\">"),
                          parameters("<parameter name=\"", "\">", "</parameter>",
                                     /*on_lines=*/false),
                          mark("</invoke>")},
                 .separator = {gap()},
                 .end = {gap(), mark("</minimax:tool_call>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<minimax:tool_call>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
