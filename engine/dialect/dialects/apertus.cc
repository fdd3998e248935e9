// Apertus: a list of objects whose only key is the name.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"apertus">() {
  static constexpr ToolDialect kThis{
      .name = "apertus",
      .syntax = {.begin = {mark("<|tools_prefix|>"), gap(), mark("["), gap()},
                 .call = {mark("{"), gap(), mark("\""), name(), mark("\""), gap(), mark(":"), gap(),
                          arguments(), gap(), mark("}")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]"), gap(), mark("<|tools_suffix|>")}},
      .speaks =
          [](const ChatTemplate& chat_template) {
            return shows(chat_template, "<|tools_prefix|>");
          },
  };
  return kThis;
}

}  // namespace tgi::dialect
