// Olmo 3: a call a line, as Python writes it, but for the words of its values.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"olmo3">() {
  static constexpr ToolDialect kThis{
      .name = "olmo3",
      .syntax = {.begin = {mark("<function_calls>"), gap()},
                 .call = {name(), mark("("), keywords_with_json(), mark(")")},
                 .separator = {line_end()},
                 .end = {gap(), mark("</function_calls>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<function_calls>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
