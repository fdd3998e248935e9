// Firefunction 2: a list behind a word.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"firefunction_v2">() {
  static constexpr ToolDialect kThis{
      .name = "firefunction_v2",
      .syntax = {.begin = {mark("functools["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "functools["); },
  };
  return kThis;
}

}  // namespace tgi::dialect
