// MiniMax M1: an object on each line between tags.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"minimax_m1">() {
  static constexpr ToolDialect kThis{
      .name = "minimax_m1",
      .syntax = {.begin = {mark("<tool_calls>"), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap()},
                 .end = {gap(), mark("</tool_calls>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<tool_calls>") &&
                   (shows(chat_template, "<beginning_of_sentence>") ||
                    shows(chat_template, "only_tool"));
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
