// Llama 3.2 and 4, ToolACE, Gemma 3: calls as a list of Python.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"pythonic">() {
  static constexpr ToolDialect kThis{
      .name = "pythonic",
      .syntax = {.begin = {mark("[")},
                 .call = {name(), mark("("), keywords(), mark(")")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]")},
                 .place = CallPlace::kWholeAnswer},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "[func_name1("); },
  };
  return kThis;
}

}  // namespace tgi::dialect
