// Functionary 3.1: the name in the tag.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"functionary">() {
  static constexpr ToolDialect kThis{
      .name = "functionary",
      .syntax = {.call = {mark("<function="), name(), mark(">"), gap(), arguments(), gap(),
                          mark("</function>")},
                 .separator = {gap()}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<function="); },
  };
  return kThis;
}

}  // namespace tgi::dialect
