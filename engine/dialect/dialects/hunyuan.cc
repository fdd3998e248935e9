// Hunyuan A13B and Jamba: a list between tags.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"hunyuan">() {
  static constexpr ToolDialect kThis{
      .name = "hunyuan",
      .syntax = {.begin = {mark("<tool_calls>"), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("</tool_calls>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<tool_calls>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
