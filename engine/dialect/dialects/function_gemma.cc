// FunctionGemma: Gemma 4's notation with other marks.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"function_gemma">() {
  static constexpr ToolDialect kThis{
      .name = "function_gemma",
      .syntax = {.call = {mark("<start_function_call>"), mark("call:"), name(), mark("{"),
                          entries("<escape>"), mark("}"), mark("<end_function_call>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<start_function_call>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
