// Nemotron Nano 2 and Super: a list between tags.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"nemotron_json">() {
  static constexpr ToolDialect kThis{
      .name = "nemotron_json",
      .syntax = {.begin = {mark("<TOOLCALL>"), gap(), mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("</TOOLCALL>")}},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "<TOOLCALL>"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
