// GLM 4 (0414): the name on a line, the arguments on the next.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"glm4">() {
  static constexpr ToolDialect kThis{
      .name = "glm4",
      .syntax = {.call = {name(), mark("\n"), arguments()},
                 .place = CallPlace::kWholeAnswer,
                 .several = false},
      .speaks = [](const ChatTemplate& chat_template) { return shows(chat_template, "[gMASK]"); },
  };
  return kThis;
}

}  // namespace tgi::dialect
