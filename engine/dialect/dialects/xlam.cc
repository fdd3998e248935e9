// xLAM: a list of objects, the whole answer.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"xlam">() {
  static constexpr ToolDialect kThis{
      .name = "xlam",
      .syntax = {.begin = {mark("["), gap()},
                 .call = {object("name", "arguments")},
                 .separator = {gap(), mark(","), gap()},
                 .end = {gap(), mark("]")},
                 .place = CallPlace::kWholeAnswer},
      .speaks =
          [](const ChatTemplate& chat_template) { return shows(chat_template, "tool_call_name"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
