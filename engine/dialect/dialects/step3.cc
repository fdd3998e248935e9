// Step 3.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"step3">() {
  static constexpr ToolDialect kThis{
      .name = "step3",
      .syntax = {.begin = {mark("<｜tool_calls_begin｜>"), gap()},
                 .call = {mark("<｜tool_call_begin｜>"), mark("function"), mark("<｜tool_sep｜>"),
                          mark("<steptml:invoke name=\""), name(), mark("\">"),
                          parameters("<steptml:parameter name=\"", "\">", "</steptml:parameter>",
                                     /*on_lines=*/false),
                          mark("</steptml:invoke>"), mark("<｜tool_call_end｜>")},
                 .separator = {gap()},
                 .end = {gap(), mark("<｜tool_calls_end｜>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<steptml:invoke"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
